from dataclasses import replace
from typing import Any

import pytest
from support.records import BENCH

from hotloop.core.record import Record
from hotloop.core.record.comparison import ComparedSide, Comparison, Difference, PhaseRatio, Ratio, Validation
from hotloop.core.record.metadata import PathRan, Work
from hotloop.core.settings import Target
from hotloop.lab.validate.bundle import stand
from hotloop.lab.validate.match import Match, match_of

FASTER = Ratio(estimate=9.0, low=8.0, high=10.0, pairs=30)
WRONG = Difference(step=3, field="rewards", index=(0, 1), a="1.0", b="0.0")
TARGETS = ["grid/arena", "grid/guard", "grid/toy"]
PAIR = match_of(Target("grid/arena", {}), "original")


def compared(outcome: Any = "faster") -> Comparison:
    side = ComparedSide(
        name="", run_id=None, target=BENCH.target, code={}, work=Work(), path=PathRan(requested="auto")
    )
    phase = PhaseRatio(phase="observations", ratio=replace(FASTER, estimate=12.0), share=0.9, worth=8.0)
    return Comparison(
        a=side, b=side, band=0.02, ratio=FASTER, phases=(phase,), outcome=outcome, why="because"
    )


def validated(target: str, comparisons: int, difference: Difference | None = None, **more: Any) -> Record:
    against = more.pop("against", f"{target} impl=native encoder=original num_envs=64")
    checked = Validation(
        comparisons=comparisons,
        mismatches=int(difference is not None),
        against=against,
        difference=difference,
        bundle="a.bundle" if difference else None,
    )
    place = replace(BENCH.target, name=target, workload_hash=f"{target}{more.pop('workload', '')}")
    return replace(BENCH, kind="validate", target=place, validation=checked, **more)


ENOUGH = [validated(target, 1_000_000) for target in TARGETS]


def test_nothing_compared_is_the_first_step_of_the_whole_world() -> None:
    found = stand(PAIR, TARGETS, [BENCH], compared())
    assert (found.step, found.comparisons, list(found.missing)) == (1, 0, TARGETS)
    assert found.command == "hotloop validate grid soak --against original"


def test_what_is_missing_is_named_by_preset() -> None:
    found = stand(PAIR, TARGETS, [*ENOUGH[:2], validated("grid/toy", 999_999)], compared())
    assert (found.step, found.missing) == (1, ("grid/toy",))
    assert found.command == "hotloop validate grid/toy soak --against original"


def test_runs_and_workloads_of_one_target_add_up() -> None:
    runs = [validated("grid/toy", 400_000), validated("grid/toy", 300_000)]
    other = validated("grid/toy", 300_000, workload="agents=5")
    found = stand(PAIR, ["grid/toy"], [*runs, other], compared())
    assert [(each.runs, each.comparisons) for each in found.configurations] == [(2, 700_000), (1, 300_000)]
    assert found.missing == ()


@pytest.mark.parametrize(("shadow", "counts"), [("true", 1_000_000), ("false", 0)])
def test_what_a_bench_compared_beside_its_run_counts(shadow: str, counts: int) -> None:
    checked = Validation(comparisons=1_000_000, mismatches=0)
    target = replace(BENCH.target, name="grid/toy", keys={"shadow": shadow})
    bench = replace(BENCH, target=target, validation=checked)
    assert stand(PAIR, ["grid/toy"], [bench], compared()).comparisons == counts


def test_another_reference_proves_nothing_here() -> None:
    twins = [
        validated(target, 9_000_000, against=f"{target} impl=reference num_envs=8") for target in TARGETS
    ]
    assert stand(PAIR, TARGETS, twins, compared()).comparisons == 0


def test_a_difference_comes_first_until_a_later_run_finds_none() -> None:
    wrong = validated("grid/toy", 50, WRONG, created="2026-01-01T00:00:00+00:00")
    found = stand(PAIR, TARGETS, [*ENOUGH[:2], wrong], compared())
    assert (found.step, found.mismatches, found.comparisons) == (1, 1, 2_000_000)
    assert found.command == "hotloop validate --replay a.bundle"
    mended = validated("grid/toy", 1_000_000, created="2026-01-02T00:00:00+00:00")
    assert stand(PAIR, TARGETS, [*ENOUGH[:2], mended, wrong], compared()).step == 4


@pytest.mark.parametrize("outcome", ["cannot tell", "slower", "same"])
def test_what_is_not_faster_has_to_be_measured(outcome: str) -> None:
    found = stand(PAIR, TARGETS, ENOUGH, compared(outcome))
    assert (found.step, found.why) == (2, f"{outcome}: because")
    assert found.command.startswith('hotloop compare "grid/arena impl=native encoder=original')


def test_a_default_that_is_equal_and_faster_has_an_old_path_to_remove() -> None:
    found = stand(PAIR, TARGETS, ENOUGH, compared())
    assert (found.step, found.is_default) == (4, True)
    assert found.alone is not None
    assert found.whole is not None
    assert (found.alone.estimate, found.whole.estimate) == (12.0, 9.0)


def test_somebody_s_fast_environment_is_no_default_yet() -> None:
    slow, fast = (Target(f"my.py:{name}", {}) for name in ("slow", "fast"))
    pair = Match(against="my.py:slow", reference=slow, candidate=fast)
    record = validated("my.py:fast", 100_000, against="my.py:slow")
    found = stand(pair, ["my.py:fast"], [record], compared())
    assert (found.step, found.is_default, found.command) == (3, False, "hotloop bench my.py:fast")


def test_the_twin_is_kept_as_the_specification() -> None:
    pair = match_of(Target("grid/toy", {}), None)
    record = validated("grid/toy", 100_000, against="grid/toy impl=reference num_envs=8")
    found = stand(pair, ["grid/toy"], [record], compared())
    assert (found.step, found.part) == (5, "the whole step")
    assert "the reference stays" in found.why
