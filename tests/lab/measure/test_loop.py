from collections import Counter
from functools import partial
from itertools import count, islice, pairwise

import pytest
from support.sides import FakeSide, steady

from hotloop.core.progress import silent
from hotloop.core.record.comparison import A, B
from hotloop.core.settings import Target
from hotloop.core.turn_clock import RUN_IN, Turn
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.loop import (
    BLOCK,
    CREW_TURN_NS,
    TURN_NS,
    Length,
    Plan,
    late_shares,
    orders,
    rounds_of,
    warm_up,
)
from hotloop.lab.measure.settle import AGAIN, PairedSamples, measure_until_settled


def sides_of(**paces: float) -> dict[str, FakeSide]:
    return {name: FakeSide(name, steady(ns), {}) for name, ns in paces.items()}


def test_every_order_comes_once_in_a_block_and_blocks_differ():
    rounds = list(islice(orders((A, B, AGAIN), seed=7), 2 * BLOCK))
    first, second = rounds[:BLOCK], rounds[BLOCK:]
    assert len(set(first)) == len(set(second)) == BLOCK
    assert first != second


def test_runs_have_orders_of_their_own():
    """One order for all of them would favour one side in all of them."""
    assert len({tuple(islice(orders((A, B, AGAIN)), 5 * BLOCK)) for _ in range(3)}) == 3


def test_nobody_takes_two_turns_in_a_row():
    turns = [name for order in islice(orders((A, B, AGAIN)), 10 * BLOCK) for name in order]
    assert all(one != other for one, other in pairwise(turns))


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
    rounds = list(islice(rounds_of({name: partial(turn, name) for name in names}, seed=7), BLOCK))
    assert called == [name for order in islice(orders(names, seed=7), BLOCK) for name in order]
    assert [taken for each in rounds for taken in each.values()] == [
        f"{name} {number}" for number, name in enumerate(called, 1)
    ]


def test_the_turns_of_sides_have_as_many_env_steps():
    sides = sides_of(a=100.0, b=300.0)
    (round_,) = islice(rounds_of({name: partial(side.turn, 40) for name, side in sides.items()}), 1)
    assert {name: turn.env_steps for name, turn in round_.items()} == {A: 40, B: 40}


def test_all_sides_run_the_same_number_of_steps_in_a_turn_that_fits_their_mean():
    sides = sides_of(a=100.0, b=300.0)
    assert warm_up(sides, budget_ns=0).length.env_steps == pytest.approx(TURN_NS / 200, rel=0.01)


def with_others(others_ns):
    """Two sides of 100 ns a step, whose turn k has so much CPU time of other threads or processes."""
    sides = {}
    for name in (A, B):
        turns = count()
        spoil = lambda turn, turns=turns: turn._replace(others_ns=others_ns(next(turns), turn.ns))  # noqa: E731
        sides[name] = FakeSide(name, steady(100.0), {}, spoil)
    return sides


def test_sides_with_workers_get_longer_turns():
    length = warm_up(with_others(lambda _, ns: ns + 30_000), budget_ns=2_000_000).length
    assert length.env_steps == pytest.approx(CREW_TURN_NS / 100, rel=0.01)


def test_one_noisy_reading_of_the_clocks_makes_no_workers():
    length = warm_up(with_others(lambda turn, _: 0 if turn else 30_000), budget_ns=2_000_000).length
    assert length.env_steps == pytest.approx(TURN_NS / 100, rel=0.01)


def test_work_that_the_processes_of_a_side_do_after_a_single_call_is_late():
    def leaves(turn: Turn) -> Turn:
        return turn._replace(cpu_ns=100, late_children_ns=30)

    sides = {A: FakeSide(A, steady(100.0), {}), B: FakeSide(B, steady(100.0), {}, leaves)}
    late = late_shares(sides, budget_ns=1_000_000_000)
    assert late == {A: 0.0, B: pytest.approx(0.3)}
    found = PairedSamples(sides, Length(1))
    found.late_steps = late
    found.note({name: Turn(100, 1, cpu_ns=100) for name in sides})
    assert (found.late_share(A), found.late_share(B)) == (0.0, pytest.approx(0.3))


def test_all_sides_play_equally_far_however_quick_they_are():
    """The slow one decides how far, so that all stand at the same place when the clock starts."""
    sides = sides_of(a=100.0, b=5_000.0, again=100.0)
    length = warm_up(sides, budget_ns=100_000).length
    assert length.run_in > 0
    played = {name: side.counters()["env_steps"] for name, side in sides.items()}
    assert len(set(played.values())) == 1
    found = PairedSamples(sides, length)
    measure_until_settled(sides, Plan(budget_ns=1_000_000), found, silent)
    assert len({side.counters()["env_steps"] for side in sides.values()}) == 1


def test_sides_of_other_batch_sizes_make_as_many_env_steps_to_the_digit():
    keys = ({"num_envs": "4"}, {"num_envs": "6"})
    sides = {
        name: TargetContender(Target("grid/toy", each)).side("random")
        for name, each in zip((A, B), keys, strict=True)
    }
    length = warm_up(sides, budget_ns=1_000_000).length
    assert length.env_steps % 12 == length.run_in % 12 == 0
    for side in sides.values():
        side.turn(*length)
    assert sides[A].counters()["env_steps"] == sides[B].counters()["env_steps"]


def test_a_turn_that_is_long_needs_nothing_before_it():
    assert warm_up(sides_of(a=60_000_000.0, b=70_000_000.0), budget_ns=0).length == Length(1, 0)


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
