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
    Length,
    Plan,
    Turn,
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
    (round_,) = islice(rounds_of(turns_of(sides, Length(40))), 1)
    assert {name: turn.env_steps for name, turn in round_.items()} == {A: 40, B: 40}


def test_all_sides_run_the_same_number_of_steps_in_a_turn_that_fits_their_mean():
    sides = sides_of(a=100.0, b=300.0)
    assert warm_up(sides, budget_ns=0).env_steps == pytest.approx(TURN_NS / 200, rel=0.01)


def test_turns_end_when_the_interval_is_narrow_enough():
    sides = sides_of(a=100.0, b=110.0, again=100.0)
    found = Found(sides, Length(10_000))
    take_turns(sides, Plan(fewest=30), found, silent)
    assert found.count == 30
    assert found.ratio().estimate == pytest.approx(100 / 110, rel=0.002)


def test_turns_end_when_the_time_is_over_but_not_before_there_is_one_round():
    sides = sides_of(a=100.0, b=110.0, again=100.0)
    found = Found(sides, Length(10_000))
    take_turns(sides, Plan(budget_ns=0, fewest=60), found, silent)
    assert found.count == 1


@pytest.mark.parametrize(("rounds", "over"), [(5, False), (6, True), (7, False), (11, False), (12, True)])
def test_turns_end_only_where_every_order_came_as_often(rounds, over):
    found = Found(sides_of(a=100.0, b=100.0, again=100.0), Length(1))
    for taken in found.turns.values():
        taken.extend([Turn(100, 1)] * rounds)
    assert is_over(found, Plan(budget_ns=1_000), spent_ns=1_001, round_ns=10.0) is over


def test_the_end_of_a_block_is_not_waited_for_where_that_is_long():
    found = Found(sides_of(a=100.0, b=100.0, again=100.0), Length(1))
    for taken in found.turns.values():
        taken.append(Turn(100, 1))
    assert not is_over(found, Plan(budget_ns=1_000), spent_ns=500, round_ns=500.0)
    assert is_over(found, Plan(budget_ns=1_000), spent_ns=501, round_ns=500.0)


def test_the_work_of_the_warm_up_is_not_counted_but_its_length_is():
    sides = sides_of(a=100.0, b=100.0, again=100.0)
    warm_up(sides, budget_ns=0)
    found = Found(sides, Length(1_000))
    take_turns(sides, Plan(budget_ns=0), found, silent)
    assert found.warmup == 1
    assert found.work[A].gained["env_steps"] == 1_000


def test_all_sides_play_equally_far_however_quick_they_are():
    """The slow one decides how far, so that all stand at the same place when the clock starts."""
    sides = sides_of(a=100.0, b=5_000.0, again=100.0)
    length = warm_up(sides, budget_ns=100_000)
    assert length.run_in > 0
    played = {name: side.counters()["env_steps"] for name, side in sides.items()}
    assert len(set(played.values())) == 1
    found = Found(sides, length)
    take_turns(sides, Plan(budget_ns=1_000_000), found, silent)
    assert len({side.counters()["env_steps"] for side in sides.values()}) == 1


def test_sides_of_other_batch_sizes_make_as_many_env_steps_to_the_digit():
    keys = ({"num_envs": "4"}, {"num_envs": "6"})
    sides = {
        name: TargetContender(Target("grid/toy", each)).side("random")
        for name, each in zip((A, B), keys, strict=True)
    }
    length = warm_up(sides, budget_ns=1_000_000)
    assert length.env_steps % 12 == length.run_in % 12 == 0
    for side in sides.values():
        side.turn(*length)
    assert sides[A].counters()["env_steps"] == sides[B].counters()["env_steps"]


def test_a_turn_that_is_long_needs_nothing_before_it():
    assert warm_up(sides_of(a=60_000_000.0, b=70_000_000.0), budget_ns=0) == Length(1, 0)


def test_the_time_for_which_the_machine_served_others_is_not_the_sides():
    found = Found(sides_of(a=100.0, b=100.0, again=100.0), Length(1))
    for k in range(20):
        late = 7_000 * (k % 3)
        found.note({A: Turn(100 + late, 1, off_ns=late), B: Turn(110, 1), AGAIN: Turn(100, 1)})
    assert found.ratio().estimate == pytest.approx(100 / 110)
    assert found.ns[A][1] == 7_100


def test_calm_pairs_alone_are_looked_at_where_they_are_enough():
    found = Found(sides_of(a=100.0, b=100.0, again=100.0), Length(1))
    for k in range(40):
        disturbed = k % 2 == 0  # a cold cache is what is left of it
        a = Turn(900, 1, off_ns=600) if disturbed else Turn(100, 1)
        found.note({A: a, B: Turn(100, 1), AGAIN: Turn(100, 1)})
    assert (found.ratio().estimate, found.ratio().pairs) == (pytest.approx(1.0), 20)


class Showing(FakeSide):
    """Shows what it is told to from a turn on."""

    def __init__(self, name, shows):
        super().__init__(name, steady(100.0), {})
        self.shows = shows

    def seen(self):
        return {"rewards": self.shows(self.turns)}


@pytest.mark.parametrize(("parted", "named"), [(B, {B}), (AGAIN, {AGAIN}), (A, {B, AGAIN})])
def test_what_parts_in_the_middle_of_the_turns_is_seen_and_ends_them(parted, named):
    sides = {
        name: Showing(name, lambda turns, wrong=name == parted: "x" if wrong and turns > 9 else "y")
        for name in (A, B, AGAIN)
    }
    found = Found(sides, Length(10))
    take_turns(sides, Plan(budget_ns=10_000_000_000, fewest=600), found, silent, equal=True)
    assert set(found.apart) == named
    assert 9 < found.count < 100
    assert "rewards after" in found.apart[min(named)]


def test_what_parts_only_at_the_end_is_seen_too():
    sides = {name: Showing(name, lambda _: "y") for name in (A, B, AGAIN)}
    found = Found(sides, Length(10))
    sides[B].shows = lambda turns: "x" if turns >= 30 else "y"
    take_turns(sides, Plan(fewest=30), found, silent, equal=True)
    assert found.count == 30
    assert B in found.apart


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
