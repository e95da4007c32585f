from collections import Counter
from itertools import islice

import pytest
from support.sides import FakeSide, steady

from hotloop.core.progress import silent
from hotloop.core.record import A, B
from hotloop.lab.measure.turns import AGAIN, BLOCK, TURN_NS, Found, Plan, is_over, orders, take_turns, warm_up


def sides_of(**paces: float) -> dict[str, FakeSide]:
    return {name: FakeSide(name, steady(ns), {}) for name, ns in paces.items()}


def test_every_order_comes_once_in_a_block_and_blocks_differ():
    first, second = (list(islice(orders((A, B, AGAIN)), k, k + BLOCK)) for k in (0, BLOCK))
    assert len(set(first)) == len(set(second)) == BLOCK
    assert first != second


def test_each_side_is_first_second_and_last_equally_often():
    places = Counter(
        (side, place)
        for order in islice(orders((A, B, AGAIN)), 10 * BLOCK)
        for place, side in enumerate(order)
    )
    assert set(places.values()) == {20}


def test_all_sides_run_the_same_number_of_steps_in_a_turn_that_fits_their_mean():
    sides = sides_of(a=100.0, b=300.0)
    assert warm_up(sides, budget_ns=0) == pytest.approx(TURN_NS / 200, rel=0.01)


def test_turns_end_when_the_interval_is_narrow_enough():
    sides = sides_of(a=100.0, b=110.0, again=100.0)
    found = Found(sides, 10_000)
    take_turns(sides, Plan(fewest=30), found, silent)
    assert found.count == 30
    assert found.ratio().estimate == pytest.approx(100 / 110, rel=0.002)


def test_turns_end_when_the_time_is_over_but_not_before_there_is_an_interval():
    sides = sides_of(a=100.0, b=110.0, again=100.0)
    found = Found(sides, 10_000)
    take_turns(sides, Plan(budget_ns=0, fewest=60), found, silent)
    assert found.count == BLOCK


@pytest.mark.parametrize(("rounds", "over"), [(5, False), (6, True), (7, False), (11, False), (12, True)])
def test_turns_end_only_where_every_order_came_as_often(rounds, over):
    found = Found(sides_of(a=100.0, b=100.0, again=100.0), 1)
    for taken in found.ns.values():
        taken.extend([100.0] * rounds)
    assert is_over(found, Plan(budget_ns=0), spent_ns=1) is over


def test_the_work_of_the_warm_up_is_not_counted_but_its_length_is():
    sides = sides_of(a=100.0, b=100.0, again=100.0)
    warm_up(sides, budget_ns=0)
    found = Found(sides, 1_000)
    take_turns(sides, Plan(budget_ns=0), found, silent)
    assert found.warmup == 1
    assert found.work[A].gained["env_steps"] == BLOCK * 1_000
