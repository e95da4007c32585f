"""Ways in which a verdict was fooled once, each tried again with real runs."""

import gc
import sys
from pathlib import Path

import pytest
from support import fooling

from hotloop.core.errors import ExitCode, InputError
from hotloop.core.record import Record
from hotloop.core.settings import Target
from hotloop.lab.bench import Extras, bench
from hotloop.lab.compare.compare import CompareSettings, compare
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.loop import Plan, Rounds

PLACE = Path(fooling.__file__)
BRIEF = CompareSettings(plan=Plan(budget_ns=1_000_000_000, fewest=12))


def calls_of_step() -> int:
    """How many steps all slow ones made so far."""
    made = sys.modules.get(PLACE.stem)
    return made.Slow.made if made else 0


def target(name: str) -> Target:
    return Target(f"{PLACE}:{name}")


def compared(a: str, b: str, asked: CompareSettings = BRIEF) -> Record:
    return compare(TargetContender(target(a)), TargetContender(target(b)), asked)


@pytest.mark.parametrize("keys", [{}, {"drag": "3000"}, {"drag": "20000"}, {"encoder": "original"}])
def test_sides_that_do_the_same_do_equal_work_however_fast_they_are(keys):
    a, b = (TargetContender(Target("grid/arena", each)) for each in ({}, keys))
    comparison = compare(a, b, BRIEF).comparisons[0]
    assert "different work" not in comparison.why
    assert comparison.a.work == comparison.b.work
    assert comparison.outcome != "faster"


def test_a_planted_slow_down_is_found_and_nothing_is_not():
    """Five times the time of a step cannot be hidden, and a thing is never slower than itself."""
    asked = CompareSettings(plan=Plan(budget_ns=1_500_000_000, fewest=12))
    clean, dragged = Target("grid/arena"), Target("grid/arena", {"drag": "40000"})
    found = compare(TargetContender(clean), TargetContender(dragged), asked)
    assert found.comparisons[0].outcome == "slower"
    assert found.exit_code == ExitCode.REGRESSION
    itself = compare(TargetContender(clean), TargetContender(clean), asked)
    assert itself.comparisons[0].outcome in ("same", "cannot tell")


def test_an_env_that_no_reset_brings_back_is_compared_as_it_was_made():
    """Sides that were replayed before do not show what one shows that was just made."""
    record = compared("moves_on", "moves_on", CompareSettings(plan=Plan(budget_ns=300_000_000, fewest=6)))
    comparison = record.comparisons[0]
    assert comparison.difference is None
    assert comparison.outcome in ("same", "cannot tell")
    assert record.method.rounds >= 6


def test_an_env_that_stops_working_after_the_replay_is_caught():
    """The replay sees 500 steps; this one works for 600."""
    record = compared("honest", "lazy")
    assert record.exit_code == ExitCode.MISMATCH
    assert "between timed turns" in record.comparisons[0].difference


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("misnaming", "infos.where.name"),
        ("counting", "infos.age"),
        ("flagging", "terminals"),
        ("drawing", "random.rng"),
    ],
)
def test_all_that_an_env_answers_is_compared(name, field):
    record = compared("honest", name)
    assert record.exit_code == ExitCode.MISMATCH
    assert field in record.comparisons[0].difference


def test_what_cannot_be_compared_is_named():
    record = compared("opaque", "opaque")
    assert record.validation.mismatches == 0
    assert "infos.engine" in record.validation.left_out
    assert any(each.code == "not-compared" and "infos.engine" in each.text for each in record.notices)


def test_what_is_not_decided_by_its_seed_is_found_as_such():
    record = compared("chancy", "chancy")
    assert record.exit_code == ExitCode.CANNOT_TELL
    assert record.comparisons[0].why.startswith("A differs from itself: ")


def test_what_is_never_the_same_twice_can_be_left_out_and_is_said():
    def seen(ignore):
        sides = (TargetContender(target("stamped"), ignore) for _ in "ab")
        return compare(*sides, CompareSettings(plan=Plan(budget_ns=300_000_000, fewest=6)))

    assert "infos.when" in seen(()).comparisons[0].why
    record = seen(("infos.when",))
    assert record.comparisons[0].difference is None
    assert record.comparisons[0].outcome in ("same", "cannot tell")
    assert {"infos.when", "next_infos.when"} <= set(record.validation.left_out)
    assert any(each.code == "not-compared" and "infos.when" in each.text for each in record.notices)
    with pytest.raises(InputError, match=r"--ignore infos\.then: there is no such field"):
        seen(("infos.then",))


@pytest.mark.parametrize(("a", "b"), [("grabbing", "polite"), ("polite", "grabbing")])
def test_a_side_that_changes_its_actions_changes_only_its_own(a, b):
    assert compared(a, b).comparisons[0].difference is None


def test_work_that_goes_on_after_the_step_is_told():
    record = compared("honest", "pooling")
    (comparison,) = record.comparisons
    assert comparison.outcome in ("cannot tell", "slower"), (
        "a step that only puts its work off is never faster"
    )
    assert record.metrics["b.cpu_share"].median > 0


def test_a_bench_tells_of_work_that_goes_on_too():
    """How much is seen of it is the scheduler's doing: once in six runs is asked for."""
    records = (bench(target("pooling"), Rounds(count=6, iterations=200, warmup=100)) for _ in range(6))
    told = (record for record in records if {"late", "background"} & {each.code for each in record.notices})
    assert len(next(told).values["cpu_share"]) == 6


def test_a_slow_env_gets_the_six_rounds_that_an_interval_needs_whatever_the_budget_is():
    """A step takes twice the budget: one each in the replay, three in the warm-up, three a round."""
    begun = calls_of_step()
    record = compared("slow", "slow", CompareSettings(plan=Plan(budget_ns=100_000_000), equal_steps=1))
    assert record.method.rounds == 6
    assert record.comparisons[0].ratio is not None
    assert 23 <= calls_of_step() - begun <= 26


def test_garbage_is_collected_between_rounds_and_in_life_whenever_python_would():
    pauses = []

    def note(phase, facts):
        if phase == "start":
            pauses.append(gc.isenabled())

    gc.callbacks.append(note)
    try:
        bench(target("littering"), Rounds(count=6, iterations=20_000, warmup=10))
        between = list(pauses)
        pauses.clear()
        record = bench(
            target("littering"),
            Rounds(count=6, iterations=20_000, warmup=10),
            extras=Extras(garbage="life"),
        )
    finally:
        gc.callbacks.remove(note)
    assert 5 <= between.count(False) <= 12
    assert pauses.count(True) > 50
    assert record.method.garbage == "life"
