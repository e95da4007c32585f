"""Turns until it is settled."""

import random
from itertools import count

import pytest
from support.sides import FakeSide, steady

from hotloop.core.progress import silent
from hotloop.core.record.comparison import A, B
from hotloop.core.turn_clock import Turn
from hotloop.lab.measure import loop
from hotloop.lab.measure.loop import BLOCK, Length, Plan, warm_up
from hotloop.lab.measure.settle import AGAIN, LookSchedule, PairedSamples, measure_until_settled
from hotloop.stats.summary import EARLY_MISS_IN, FEWEST, FINAL_MISS_IN, FIRST


def sides_of(**paces: float) -> dict[str, FakeSide]:
    return {name: FakeSide(name, steady(ns), {}) for name, ns in paces.items()}


def found_with(rounds: int) -> PairedSamples:
    """So many rounds of 100 ns on every side."""
    found = PairedSamples(sides_of(a=100.0, b=100.0, again=100.0), Length(1))
    for _ in range(rounds):
        found.note({name: Turn(100, 1) for name in (A, B, AGAIN)})
    return found


@pytest.mark.parametrize("b_ns", [50.0, 97.0, 100.0, 110.0, 500.0])
def test_turns_end_when_it_is_clear(b_ns):
    sides = sides_of(a=100.0, b=b_ns, again=100.0)
    found = PairedSamples(sides, Length(10_000))
    measure_until_settled(sides, Plan(), found, silent)
    assert found.count == FIRST
    assert found.ratio().estimate == pytest.approx(100 / b_ns, rel=0.002)
    assert found.one_miss_in == EARLY_MISS_IN, "the interval of a look is the one that is told"


def test_turns_go_on_at_the_edge_of_the_band_until_the_time_is_over():
    """A narrow interval across the edge settles nothing."""
    clock = count(step=1_000_000)
    sides = sides_of(a=100.0, b=100.0 / 1.02, again=100.0)
    found = PairedSamples(sides, Length(10_000))
    measure_until_settled(sides, Plan(budget_ns=100_000_000, clock=lambda: next(clock)), found, silent)
    assert found.count == 102, "a round a millisecond, and the last block is waited for"
    assert found.one_miss_in == FINAL_MISS_IN


def drawn(chance: random.Random, rounds: int) -> PairedSamples:
    """Rounds of a side that is faster by exactly the band, in noise of 3%."""
    found = PairedSamples(sides_of(a=100.0, b=100.0), Length(1))
    for name, mean in ((A, 1.02), (B, 1.0)):
        found.turns[name] = [
            Turn(round(1_000_000 * mean * chance.lognormvariate(0, 0.03)), 1) for _ in range(rounds)
        ]
    return found


def misled(rounds: int, looks) -> int:
    """How many of 150 runs end with faster, of which none may, when they are looked at so."""
    chance, wrong = random.Random(3), 0
    for _ in range(150):
        whole, found = drawn(chance, rounds), found_with(0)
        for number in range(6, rounds + 1, 6):
            found.turns = {name: turns[:number] for name, turns in whole.turns.items()}
            if looks(found, number):
                wrong += found.ratio().low > 1.02
                break
    return wrong


def test_looking_often_misleads_no_more_often():
    """Who looks at every block with the interval of the end is wrong many times as often."""
    schedules = {}

    def by_schedule(found: PairedSamples, number: int) -> bool:
        schedule = schedules.setdefault(id(found), LookSchedule(FIRST))
        return schedule.due(number) and found.settled(0.02)

    def whenever(found: PairedSamples, _: int) -> bool:
        return found.ratio().low > 1.02

    assert misled(120, by_schedule) <= 1
    assert misled(120, whenever) >= 8


def test_turns_end_when_the_time_is_over_but_not_before_an_interval_has_six_rounds():
    sides = sides_of(a=100.0, b=110.0, again=100.0)
    found = PairedSamples(sides, Length(10_000))
    measure_until_settled(sides, Plan(budget_ns=0, fewest=60), found, silent)
    assert found.count == FEWEST
    assert found.ratio().estimate == pytest.approx(100 / 110, rel=0.002)


@pytest.mark.parametrize(("rounds", "over"), [(5, False), (6, True), (7, False), (11, False), (12, True)])
def test_turns_end_only_where_every_order_came_as_often(rounds, over):
    assert Plan(budget_ns=1_000).is_over(rounds, spent_ns=1_001, round_ns=10.0) is over


def test_the_end_of_a_block_is_not_waited_for_where_that_is_long():
    assert not Plan(budget_ns=1_000).is_over(7, spent_ns=500, round_ns=500.0)
    assert Plan(budget_ns=1_000).is_over(7, spent_ns=501, round_ns=500.0)


def test_six_rounds_come_before_the_budget_but_not_before_all_patience():
    plan = Plan(budget_ns=1_000)
    assert not plan.is_over(1, spent_ns=plan.patience_ns // 6, round_ns=plan.patience_ns / 6)
    assert plan.is_over(1, spent_ns=plan.patience_ns // 5, round_ns=plan.patience_ns / 5)


def test_looks_are_few_and_between_blocks():
    schedule = LookSchedule(FIRST)
    looks = [rounds for rounds in range(1, 2_000) if schedule.due(rounds)]
    assert looks[:5] == [18, 24, 30, 42, 54]
    assert all(rounds % BLOCK == 0 for rounds in looks)
    assert len(looks) < 25


def test_the_work_of_the_warm_up_is_not_counted_but_its_length_is():
    sides = sides_of(a=100.0, b=100.0, again=100.0)
    warm_up(sides, budget_ns=0)
    found = PairedSamples(sides, Length(1_000))
    measure_until_settled(sides, Plan(budget_ns=0), found, silent)
    assert found.warmup == 1
    assert found.work[A].gained["env_steps"] == 1_000 * FEWEST


def test_a_disturbed_turn_is_dropped_together_with_its_partner():
    found = PairedSamples(sides_of(a=100.0, b=100.0, again=100.0), Length(1))
    for k in range(40):
        b = Turn(900, 1, disturbed=True) if k % 2 == 0 else Turn(100, 1)
        found.note({A: Turn(100 + k, 1), B: b, AGAIN: Turn(100 + k, 1)})
    assert found.ratio().pairs == 20
    assert found.used_ns() == {
        A: found.used_ns()[AGAIN],
        B: [100.0] * 20,
        AGAIN: [101.0 + 2 * k for k in range(20)],
    }
    assert found.all_medians() == pytest.approx(119.5 / 500)


def test_time_is_never_subtracted_from_a_turn_that_waited_for_its_own_processes():
    """A side whose own workers took its core is as slow as the wall clock says."""
    found = found_with(0)
    for _ in range(20):
        found.note({A: Turn(100, 1), B: Turn(400, 1, cpu_ns=700, others_ns=600), AGAIN: Turn(100, 1)})
    assert found.ratio().estimate == pytest.approx(0.25)


def test_all_rounds_count_if_nearly_all_were_disturbed_and_that_is_noted():
    found = found_with(0)
    for k in range(40):
        found.note({A: Turn(100, 1), B: Turn(50 + k, 1, disturbed=k > 8), AGAIN: Turn(100, 1)})
    assert found.ratio().pairs == 40
    assert found.crowded_rounds == 31
    assert len(found.used_ns()[B]) == 40


def test_a_side_that_only_polls_has_no_cpu_line():
    found = found_with(0)
    for _ in range(10):
        found.note({A: Turn(100, 1, cpu_ns=100), B: Turn(50, 1, cpu_ns=90, polls=True), AGAIN: Turn(100, 1)})
    assert found.cpu_ratio() is None


def test_the_noise_of_the_clocks_is_no_work_of_other_threads():
    """A turn of one quick step takes less than it takes to read the clocks."""
    found = found_with(0)
    for _ in range(6):
        quick, busy = Turn(16_000, 1, cpu_ns=34_000), Turn(16_000_000, 1, cpu_ns=34_000_000)
        found.note({A: quick, B: busy, AGAIN: quick})
    assert found.cpu_share(A) == 1.0
    assert found.cpu_share(B) == pytest.approx(34 / 16)


def test_a_side_that_is_faster_after_a_pause_works_between_its_turns():
    found = found_with(0)
    for k in range(64):
        rested = k % 8 == 7
        b = Turn(50 if rested else 80, 1, rested=rested, polls=True)
        found.note({A: Turn(100, 1), B: b, AGAIN: Turn(100, 1)})
    assert found.gain_by_rest() == pytest.approx(1.6)
    assert found.ratio().estimate == pytest.approx(100 / 80), "turns after a pause are not like the others"


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
    found = PairedSamples(sides, Length(10))
    measure_until_settled(
        sides, Plan(budget_ns=10_000_000_000, fewest=600), found, silent, fields=("rewards",)
    )
    assert set(found.diverged) == named
    assert 9 < found.count < 100
    assert "rewards after" in found.diverged[min(named)]


def test_what_parts_only_at_the_end_is_seen_too():
    sides = {name: Showing(name, lambda _: "y") for name in (A, B, AGAIN)}
    found = PairedSamples(sides, Length(10))
    sides[B].shows = lambda turns: "x" if turns >= 30 else "y"
    measure_until_settled(sides, Plan(fewest=30), found, silent, fields=("rewards",))
    assert found.count == 30
    assert B in found.diverged


def test_rounds_in_which_time_was_stolen_are_left_out():
    found = found_with(0)
    for k in range(40):
        stolen = k % 2 == 0
        found.note({A: Turn(900 if stolen else 100, 1), B: Turn(100, 1), AGAIN: Turn(100, 1)})
        if stolen:
            found.disturbed.add(k)
    assert (found.ratio().estimate, found.ratio().pairs) == (pytest.approx(1.0), 20)


def test_a_tick_of_the_hypervisor_is_looked_for_in_all_rounds_since_the_last_look(monkeypatch):
    ticks = count(step=1)
    monkeypatch.setattr(loop, "stolen_ticks", lambda: next(ticks))
    theft, found = loop.StealMeter(0), found_with(3)
    theft.note(found, loop.STEAL_NS - 1)
    assert not found.disturbed
    theft.note(found, loop.STEAL_NS)
    assert found.disturbed == {0, 1, 2}
    found.note({name: Turn(100, 1) for name in (A, B, AGAIN)})
    theft.note(found, 2 * loop.STEAL_NS)
    assert found.disturbed == {0, 1, 2, 3}


def test_where_nobody_counts_stolen_time_nothing_is_doubted(monkeypatch):
    monkeypatch.setattr(loop, "stolen_ticks", lambda: None)
    found = found_with(3)
    loop.StealMeter(0).note(found, 10 * loop.STEAL_NS)
    assert not found.disturbed


def test_an_instance_that_was_left_alone_stands_for_the_others_of_its_round():
    """A's first was put off its core in every round and its second never: no round is lost."""
    found = found_with(0)
    for _ in range(20):
        found.note({A: Turn(900, 1, disturbed=True), B: Turn(110, 1), AGAIN: Turn(100, 1)})
    assert found.ratio().estimate == pytest.approx(100 / 110)
    assert found.ratio().pairs == 20
