from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from support.records import PROFILE

from hotloop.core.errors import ExitCode, InputError
from hotloop.core.project import Budget
from hotloop.core.record import CPU_SHARE, Resources
from hotloop.core.record.comparison import Comparison, Ratio
from hotloop.core.record.experiments import BudgetResult, Estimate
from hotloop.core.record.metadata import Instructions
from hotloop.core.record.profile import Phase
from hotloop.judge.checks import (
    change_between,
    change_of_speed,
    downgrade_if_unmeasurable,
    estimate,
    hold,
    lacked_cpu,
    loosened,
    needs_another,
    rounded,
    settle,
    values_of,
    weakened,
)
from hotloop.judge.judge import judge

TODAY = date(2026, 6, 1)
SPEED, COUNTED = "env_steps_per_s", "instructions_per_env_step"


def budget(metric: str = SPEED, **more: Any) -> Budget:
    usual: dict[str, Any] = {"name": "b", "target": "grid/toy", "metric": metric, "owner": "sim team"}
    if "limit" not in more:
        usual |= {"max_change": 0.05, "against": "main"}
    return Budget(**usual | more)


def change(value: float, low: float, high: float) -> Estimate:
    return Estimate(value=value, low=low, high=high, samples=30)


def held(value: float, low: float, high: float, **more: Any) -> BudgetResult:
    return hold(budget(**more), TODAY, now=[100.0], change=change(value, low, high))


def test_a_speed_may_fall_by_as_much_as_was_allowed_and_no_more() -> None:
    assert held(0.0, -0.02, 0.02).standing == "met"
    assert held(-0.1, -0.12, -0.08).standing == "missed"
    assert held(-0.05, -0.07, -0.03).standing == "cannot tell"


def test_less_is_better_of_what_is_counted() -> None:
    assert held(0.1, 0.1, 0.1, metric=COUNTED).standing == "missed"
    assert held(0.05, 0.05, 0.05, metric=COUNTED).standing == "met"
    assert held(-0.3, -0.3, -0.3, metric=COUNTED).standing == "met"


@pytest.mark.parametrize("gain", [0.01, 0.1, 1.0, 10.0])
def test_an_improvement_is_never_red(gain: float) -> None:
    assert held(gain, gain / 2, 2 * gain).standing == "met"
    less = -gain / (1 + gain)
    assert held(less, less, less / 2, metric=COUNTED).standing == "met"
    for metric in (SPEED, "phase:step"):
        better = 1 + gain if metric == SPEED else 1 / (1 + gain)
        found = hold(budget(metric, limit=100), TODAY, now=[100 * better] * 6)
        assert found.standing == "met"


def test_an_absolute_limit_is_the_least_of_a_speed_and_the_most_of_a_time() -> None:
    slow, fast = [80.0, 81, 82, 83, 84, 85], [120.0, 121, 122, 123, 124, 125]
    assert hold(budget(limit=100), TODAY, now=slow).standing == "missed"
    assert hold(budget(limit=100), TODAY, now=fast).standing == "met"
    assert hold(budget(limit=100), TODAY, now=slow[:3] + fast[:3]).standing == "cannot tell"
    assert hold(budget("phase:step", limit=100), TODAY, now=slow).standing == "met"
    assert hold(budget("phase:step", limit=100), TODAY, now=fast).standing == "missed"


def test_a_gain_beyond_noise_suggests_the_line_that_holds_it() -> None:
    absolute = hold(budget(limit=100), TODAY, now=[200.0] * 6)
    assert absolute.tighter == "limit = 150"
    assert hold(budget("phase:step", limit=100), TODAY, now=[50.0] * 6).tighter == "limit = 75"
    relative = held(0.2, 0.15, 0.25)
    assert relative.tighter == "limit = 97.5  # in place of max_change and against"
    assert held(0.2, 0.01, 0.4).tighter is None
    assert hold(budget(limit=100), TODAY, now=[101.0] * 6).tighter is None
    assert held(-0.1, -0.12, -0.08).tighter is None


def test_an_expired_budget_fails_and_names_its_owner() -> None:
    last_day = hold(budget(limit=1, expires=TODAY), TODAY, now=[2.0])
    assert last_day.standing == "met"
    over = hold(budget(limit=1, expires=date(2026, 5, 31), enforce=False), TODAY, now=[2.0])
    assert (over.standing, "sim team" in over.why) == ("expired", True)
    assert code_of(over) is ExitCode.REGRESSION


def test_what_answers_differently_is_not_equal_whatever_its_speed() -> None:
    found = hold(
        budget(), TODAY, now=[1.0], change=change(0.1, 0.1, 0.1), difference="step 4: rewards differ"
    )
    assert (found.standing, found.why) == ("not equal", "it answers differently: step 4: rewards differ")
    assert code_of(found) is ExitCode.MISMATCH


def test_no_baseline_yet_is_said_and_cannot_be_told() -> None:
    found = hold(budget(), TODAY, now=[1.0], doubt="there is no baseline yet")
    assert (found.standing, found.why) == ("cannot tell", "there is no baseline yet")
    assert code_of(found) is ExitCode.CANNOT_TELL


def code_of(found: BudgetResult) -> ExitCode:
    return ExitCode(judge(replace(PROFILE, kind="gate", held=found)).exit_code)


def test_the_standing_decides_the_exit_code_unless_it_is_only_hoped_for() -> None:
    missed = held(-0.1, -0.12, -0.08)
    assert code_of(missed) is ExitCode.REGRESSION
    assert code_of(replace(missed, enforced=False)) is ExitCode.FINE
    assert code_of(held(0.0, -0.01, 0.01)) is ExitCode.FINE
    assert code_of(held(-0.05, -0.07, -0.03)) is ExitCode.CANNOT_TELL


MISSED, MET, UNSURE = held(-0.1, -0.12, -0.08), held(0.0, -0.01, 0.01), held(-0.05, -0.07, -0.03)


@pytest.mark.parametrize(
    ("runs", "standing"),
    [
        ([MET], "met"),
        ([MISSED, MISSED], "missed"),
        ([UNSURE, MISSED, MISSED], "missed"),
        ([MISSED, UNSURE, MISSED], "missed"),
        ([UNSURE, UNSURE, MISSED, UNSURE, MISSED], "missed"),
        ([MISSED, MET, MET, MET, MET], "cannot tell"),
        ([MISSED, UNSURE, UNSURE, UNSURE, UNSURE], "cannot tell"),
        ([UNSURE, MET], "met"),
        ([UNSURE, UNSURE, UNSURE, UNSURE, UNSURE], "cannot tell"),
    ],
)
def test_a_miss_is_seen_twice_before_it_is_one(runs: list[BudgetResult], standing: str) -> None:
    assert all(needs_another(runs[:count]) for count in range(1, len(runs)))
    assert not needs_another(runs)
    assert (settle(runs).standing, settle(runs).runs) == (standing, len(runs))


MORE, AS_MANY = (held(each, each, each, metric=COUNTED) for each in (0.06, 0.04))


@pytest.mark.parametrize(
    ("runs", "standing"),
    [([MORE, MORE], "missed"), ([MORE, AS_MANY, MORE], "missed"), ([MORE, AS_MANY, AS_MANY], "met")],
)
def test_of_counts_in_other_places_of_memory_most_decide(runs: list[BudgetResult], standing: str) -> None:
    assert all(needs_another(runs[:count]) for count in range(1, len(runs)))
    assert not needs_another(runs)
    assert (settle(runs).standing, settle(runs).runs) == (standing, len(runs))


def test_an_absolute_speed_on_a_busy_machine_is_never_red() -> None:
    busy = replace(PROFILE, machine={**PROFILE.machine, "load": 9.0})
    alone = replace(busy, values={**busy.values, CPU_SHARE: (0.99, 1.0)})
    why = lacked_cpu(budget(limit=100), busy)
    assert why == "the machine had a load of 9.0: measure on a quiet one, or hold it against a commit"
    assert lacked_cpu(budget(limit=100), PROFILE) is None
    assert lacked_cpu(budget(limit=100), alone) is None
    assert lacked_cpu(budget(), busy) is None
    assert lacked_cpu(budget(COUNTED, limit=100), busy) is None
    assert (
        downgrade_if_unmeasurable(hold(budget(limit=100), TODAY, now=[50.0] * 6), why).standing
        == "cannot tell"
    )
    assert downgrade_if_unmeasurable(hold(budget(limit=100), TODAY, now=[150.0] * 6), why).standing == "met"


def test_what_is_only_hoped_for_is_measured_once() -> None:
    assert not needs_another([replace(MISSED, enforced=False)])


def test_changes_are_by_pairs_and_few_pairs_span_all_of_them() -> None:
    few = change_between([10.0, 20.0], [11.0, 21.0])
    assert (round(few.low, 6), round(few.high, 6), few.samples) == (0.05, 0.1, 2)
    many = change_between([10.0] * 7, [11.0] * 7)
    assert round(many.value, 6) == 0.1
    with pytest.raises(InputError, match="0 cannot be compared"):
        change_between([0.0], [1.0])


def test_a_comparison_in_turns_is_a_change_of_the_speed() -> None:
    ratio = Ratio(estimate=0.9, low=0.88, high=0.92, pairs=60)
    side: Any = None
    compared = Comparison(a=side, b=side, band=0.05, ratio=ratio, outcome="slower", why="")
    found = change_of_speed(compared)
    assert found is not None
    assert (round(found.value, 3), found.samples) == (-0.1, 60)
    assert change_of_speed(replace(compared, ratio=None)) is None


def test_every_metric_is_read_from_a_record() -> None:
    record = replace(
        PROFILE,
        instructions=Instructions(per_env_step=7.5, runs=((1, 1), (2, 2)), isa="x"),
        resources=Resources(rss_peak_bytes=4096),
    )
    values = {
        name: values_of(budget(name), record)
        for name in (
            COUNTED,
            "rss_peak_bytes",
            "overhead_ratio",
            "phase:observations",
            "share:wall/step/actions",
        )
    }
    assert values[COUNTED] == (7.5,)
    assert values["rss_peak_bytes"] == (4096.0,)
    assert values["overhead_ratio"] == (1.012,)
    assert values["phase:observations"] == (160.0,)
    assert values["share:wall/step/actions"] == (200 / 2_500,)
    assert values_of(budget("unaccounted_share"), record)[0] == pytest.approx(100 / 2_000)
    assert len(values_of(budget(SPEED), record)) == 8


def test_a_function_that_is_called_in_several_places_is_budgeted_by_all_of_them() -> None:
    def phase(path: str, total_ns: int) -> Phase:
        return replace(PROFILE.phases[0], path=path, total_ns=total_ns, share=total_ns / 1_000)

    paths = {"wall": 1_000, "wall/a/flush": 100, "wall/b/flush": 50, "wall/a/flush/c/flush": 40}
    record = replace(PROFILE, phases=tuple(phase(*each) for each in paths.items()))
    steps = record.work.env_steps
    assert values_of(budget("phase:flush"), record) == (pytest.approx(150 / steps),)
    assert values_of(budget("share:flush"), record) == (pytest.approx(0.15),)


def test_a_phase_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(InputError, match=r"no phase 'obs': there are wall, .*wall/step/observations"):
        values_of(budget("phase:obs"), PROFILE)
    with pytest.raises(InputError, match="says nothing of instructions"):
        values_of(budget(COUNTED), PROFILE)


def test_estimates_of_few_values_span_all_of_them() -> None:
    assert estimate([1.0, 3.0]) == Estimate(value=2.0, low=1.0, high=3.0, samples=2)


@pytest.mark.parametrize(("value", "text"), [(15234.0, "15200"), (1.2345, "1.23"), (0.012345, "0.0123")])
def test_limits_are_written_with_three_digits(value: float, text: str) -> None:
    assert rounded(value) == text


def test_a_record_keeps_its_budget() -> None:
    record = judge(replace(PROFILE, kind="gate", held=MISSED))
    again = type(record).from_json(record.to_json())
    assert again.held == MISSED
    assert (MISSED.bound, replace(MISSED, more_is_better=False).bound) == (-0.05, 0.05)
    assert hold(budget(limit=200), TODAY, now=[100.0] * 6).distance == -0.5
    assert hold(budget("phase:step", limit=200), TODAY, now=[100.0] * 6).distance == 0.5


def test_what_a_budget_lost_is_named_and_what_it_gained_is_not() -> None:
    speed = Budget(name="a", target="grid/toy", metric="env_steps_per_s", limit=100.0)
    less = Budget(name="a", target="-- x", metric="printed_less:s", limit=1.0)
    change = Budget(name="a", target="grid/toy", metric="env_steps_per_s", max_change=0.05, against="main")
    for old, new, told in (
        (speed, speed, []),
        (speed, replace(speed, limit=120.0), []),
        (speed, replace(speed, limit=90.0), ["limit loosened from 100 to 90"]),
        (less, replace(less, limit=2.0), ["limit loosened from 1 to 2"]),
        (less, replace(less, limit=0.5), []),
        (speed, change, ["held to 5.0% of main, was held to 100"]),
        (change, replace(change, max_change=0.1), ["max_change loosened from 0.05 to 0.1"]),
        (change, replace(change, against="v1"), ["held to 5.0% of v1, was held to 5.0% of main"]),
        (speed, replace(speed, enforce=False), ["no longer enforced"]),
        (replace(speed, enforce=False), speed, []),
        (speed, replace(speed, keys={"num_envs": 9}), ["target was grid/toy, is grid/toy num_envs=9"]),
    ):
        assert loosened(old, new) == told
    assert weakened({"a": speed, "b": speed}, {"a": speed}) == ["budget b: removed"]
