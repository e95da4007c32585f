from collections import Counter
from functools import partial
from itertools import islice

import pytest
from support.sides import FakeSide, steady

from hotloop.core.progress import silent
from hotloop.core.record import A, B
from hotloop.core.target import Target
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.turns import (
    AGAIN,
    BLOCK,
    RUN_IN,
    TURN_NS,
    Found,
    Plan,
    is_over,
    orders,
    rounds_of,
    take_turns,
    turns_of,
    warm_up,
)


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


def test_of_more_than_three_sides_an_order_is_followed_by_its_mirror_image():
    names = tuple("abcdefghijkl")
    rounds = list(islice(orders(names), 8))
    assert all(sorted(order) == sorted(names) for order in rounds)
    assert [order[::-1] for order in rounds[::2]] == rounds[1::2]
    assert len(set(rounds)) == 8


def test_a_round_has_one_turn_of_every_side_in_its_order():
    called = []

    def turn(name):
        called.append(name)
        return f"{name} {len(called)}"

    names = (A, B, AGAIN)
    rounds = list(islice(rounds_of({name: partial(turn, name) for name in names}), BLOCK))
    assert called == [name for order in islice(orders(names), BLOCK) for name in order]
    assert [taken for each in rounds for taken in each.values()] == [
        f"{name} {number}" for number, name in enumerate(called, 1)
    ]


def test_the_turns_of_sides_have_as_many_env_steps():
    sides = sides_of(a=100.0, b=300.0)
    (round_,) = islice(rounds_of(turns_of(sides, 40)), 1)
    assert {name: turn.env_steps for name, turn in round_.items()} == {A: 40, B: 40}


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


def test_a_turn_counts_env_steps_and_its_run_in_is_not_among_them():
    side = TargetContender(Target("grid/toy", {"num_envs": "4"})).side("random")
    turn = side.turn(80)
    assert turn.env_steps == 80
    assert side.counters()["env_steps"] == 80 + 80 // RUN_IN
    assert turn.ns_per_env_step == turn.ns / 80


def test_a_part_of_a_call_is_made_a_whole_one():
    side = TargetContender(Target("grid/toy", {"num_envs": "4"})).side("random")
    assert side.turn(81).env_steps == 84
    assert side.turn(1).env_steps == 4


def test_two_sides_of_one_seed_are_played_alike():
    given = ({"num_envs": "2", "encoder": name} for name in ("original", "optimized"))
    a, b = (TargetContender(Target("grid/toy", keys)).side("random") for keys in given)
    for side in (a, b):
        side.turn(30)
    assert a.counters()["tokens"] == b.counters()["tokens"] > 0
