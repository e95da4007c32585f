"""What `hotloop bench` tells a script, from targets that pass the time of a clock of their own."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import paced_target
from support.clock import CLOCK

from hotloop.core.errors import ExitCode
from hotloop.core.record import read
from hotloop.envs import native

TARGET = f"{Path(paced_target.__file__)}:make"
BRIEF = ("--iterations", "8", "--warmup", "8")
RUN_US = 2_200
"""What ten rounds of two calls take, and the two of the warm-up."""

Command = Callable[..., Any]
needs_native = pytest.mark.skipif(native.why_not("grid") is not None, reason="the native module is not built")


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("hotloop.lab.measure.sides.now_ns", CLOCK.now)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.1, 0.1, 0.1))
    monkeypatch.setattr("hotloop.core.machine.cpu_ticks", lambda root: [1, 0, 0, 0, 0, 0, 0, 0])
    yield
    CLOCK.ns = 0


@pytest.fixture
def bench(hotloop: Command) -> Command:
    """Measure the paced target in ten rounds."""

    def run(*words: str, rounds: int = 10) -> Any:
        return hotloop("bench", TARGET, *BRIEF, "--rounds", str(rounds), *words)

    return run


@pytest.fixture
def before(bench: Command) -> str:
    """The record of a run to compare with."""
    assert bench("--phase", "before", "--output", "before.json").code == ExitCode.FINE
    return "before.json"


def outcomes(said: Any) -> list[tuple[str, str]]:
    return [(each["outcome"], each["why"]) for each in said.json["comparisons"]]


def test_the_same_pace_is_the_same_and_fine(bench: Command, before: str) -> None:
    said = bench("--baseline", before, "--json")
    assert (said.code, said.json["verdict"]) == (ExitCode.FINE, "pass")
    assert outcomes(said) == [("same", "within 2%; equality not known")]
    assert said.json["comparisons"][0]["ratio"] == {"estimate": 1.0, "low": 1.0, "high": 1.0, "pairs": 0}


def test_rounds_that_jitter_are_unstable(bench: Command) -> None:
    said = bench("jitter=2", "--json")
    assert (said.code, said.json["verdict"]) == (ExitCode.UNSTABLE, "cannot tell")


def test_faster_is_fine(bench: Command, before: str) -> None:
    said = bench("us=50", "--baseline", before, "--json")
    assert (said.code, said.json["verdict"]) == (ExitCode.FINE, "pass")
    assert outcomes(said)[0][0] == "faster"
    assert said.json["comparisons"][0]["ratio"]["estimate"] == 2.0


def test_slower_twice_is_a_regression(bench: Command, before: str) -> None:
    said = bench("us=110", "--baseline", before, "--json")
    assert (said.code, said.json["verdict"]) == (ExitCode.REGRESSION, "fail")
    (compared,) = said.json["comparisons"]
    assert compared["outcome"] == "slower"
    assert compared["second"]["estimate"] == compared["ratio"]["estimate"] == pytest.approx(1 / 1.1)
    assert "a second run agrees" in compared["why"]


def test_slower_once_cannot_tell(bench: Command, before: str) -> None:
    said = bench(f"slow_until_us={3 * RUN_US}", "--baseline", before, "--json")
    assert said.code == ExitCode.CANNOT_TELL
    (compared,) = said.json["comparisons"]
    assert (compared["ratio"]["estimate"], compared["second"]["estimate"]) == (0.5, 1.0)
    assert "a second run was same" in compared["why"]
    # What is published is the first run alone.
    assert len(said.json["values"]["env_steps_per_s"]) == 10
    assert said.json["work"]["env_steps"] == 80


def test_a_mismatch_outranks_slower_missed_and_unstable(bench: Command, before: str) -> None:
    words = ("us=300", "jitter=2", "--target-steps-per-sec", "1e9", "--enforce-target")
    assert bench(*words, "--baseline", before).code == ExitCode.REGRESSION
    said = bench(*words, f"unequal_us={3 * RUN_US}", "--baseline", before, "--json")
    assert (said.code, said.json["verdict"]) == (ExitCode.MISMATCH, "fail")
    assert outcomes(said)[0][1].startswith("not equal: 1 mismatches")


@pytest.mark.parametrize("runs", [1.1, 2.5, 3.1, 4.5])
def test_a_mismatch_counts_wherever_it_happens(bench: Command, before: str, runs: float) -> None:
    """In the warm-up of a run that takes twice as long as before, in its rounds, or in the second run."""
    said = bench("us=200", f"unequal_us={runs * RUN_US}", "--baseline", before, "--json")
    assert said.code == ExitCode.MISMATCH
    assert said.json["validation"]["mismatches"] >= 1


@pytest.mark.parametrize(
    ("words", "counter"),
    [
        ("skip_updates=1", "updates 1 against 0.66"),
        ("end_every=2", "resets 0 against 0.5"),
        ("drop_tokens=1", "tokens "),
    ],
)
def test_less_work_is_never_called_faster(bench: Command, words: str, counter: str) -> None:
    """Also where it took half the time."""
    bench("--output", "long.json", rounds=100)
    said = bench("us=50", words, "--baseline", "long.json", "--json", rounds=100)
    assert said.code == ExitCode.CANNOT_TELL
    ((outcome, why),) = outcomes(said)
    assert (outcome, why.startswith(f"different work: {counter}")) == ("cannot tell", True), why
    assert why.endswith("an env-step")


def test_cannot_tell_outranks_unstable(bench: Command, before: str) -> None:
    said = bench("jitter=2", "--baseline", before, "--json")
    assert said.code == ExitCode.CANNOT_TELL
    assert "; to decide: hotloop compare " in outcomes(said)[0][1]


def test_every_baseline_has_its_row_and_the_gravest_decides(bench: Command, before: str) -> None:
    bench("us=50", "--output", "quick.json", "--phase", "quick")
    bench("us=200", "--output", "slow.json", "--phase", "slow")
    said = bench("--baseline", before, "quick.json", "--baseline", "slow.json")
    assert said.code == ExitCode.REGRESSION
    lines = [" ".join(line.split()) for line in said.out.splitlines()]
    assert "before 1.000 [1.000, 1.000] same within 2%; equality not known" in lines
    assert any(line.startswith("slow 2.000 [2.000, 2.000] faster") for line in lines)
    assert any(line.startswith("quick 0.500 [0.500, 0.500] slower") for line in lines)


@pytest.mark.parametrize(("rounds", "code"), [(6, ExitCode.CANNOT_TELL), (7, ExitCode.FINE)])
def test_seven_rounds_a_side_are_needed(bench: Command, rounds: int, code: ExitCode) -> None:
    bench("--output", "few.json", rounds=rounds)
    assert bench("--baseline", "few.json", rounds=rounds).code == code


def test_a_target_is_met_missed_or_failed(bench: Command) -> None:
    """Four envs in 100 us are 40,000 env-steps a second."""
    met = bench("--target-steps-per-sec", "40000", "--enforce-target", "--json")
    assert (met.code, met.json["goal"]["met"]) == (ExitCode.FINE, True)
    missed = bench("--target-steps-per-sec", "50000")
    assert missed.code == ExitCode.FINE
    assert "50.0 k env-steps/s: the median is 20.0% below; floor 40.0 k" in missed.out
    assert "20.0% below the target of 50,000 env-steps/s" in missed.err
    failed = bench("--target-steps-per-sec", "50000", "--enforce-target", "--json")
    assert (failed.code, failed.json["verdict"]) == (ExitCode.REGRESSION, "fail")


@pytest.mark.parametrize(("rounds", "floor"), [(4, None), (5, 40_000.0)])
def test_five_rounds_make_a_floor(bench: Command, rounds: int, floor: float | None) -> None:
    said = bench("--target-steps-per-sec", "1", "--json", rounds=rounds)
    assert said.json["goal"]["floor"] == floor


def test_ctrl_c_leaves_a_partial_record_that_is_compared_with_nothing(bench: Command, before: str) -> None:
    words = (
        f"interrupt_us={RUN_US + 800}",
        "--baseline",
        before,
        "--save-baseline",
        "main",
        "--output",
        "partial.json",
    )
    said = bench(*words, "--target-steps-per-sec", "1e9", "--enforce-target")
    assert said.code == ExitCode.INTERRUPTED
    record = read(Path("partial.json"))
    assert (record.partial, len(record.values["env_steps_per_s"])) == (True, 2)
    assert (record.comparisons, record.goal) == ((), None)
    assert "not saved as baseline main: the run was interrupted" in said.err
    assert list(Path("baselines").glob("*/*.json")) == []
    refused = bench("--baseline", "partial.json")
    assert (refused.code, "was interrupted and cannot be compared" in refused.err) == (ExitCode.USAGE, True)


def test_ctrl_c_in_the_second_run_leaves_a_partial_record(bench: Command, before: str) -> None:
    said = bench("us=200", f"interrupt_us={3.5 * RUN_US}", "--baseline", before, "--json")
    assert (said.code, said.json["partial"]) == (ExitCode.INTERRUPTED, True)
    assert said.json["comparisons"] == []


def test_a_crash_of_the_target_is_a_fault(bench: Command) -> None:
    said = bench("break_at=5")
    assert said.code == ExitCode.FAULT
    assert "a fault: ZeroDivisionError: planted" in said.err


@pytest.mark.parametrize(
    "place",
    [
        "hotloop.cli.commands.bench.find_baselines",
        "hotloop.cli.commands.bench.check_baseline",
        "hotloop.lab.measure.target.check",
        "hotloop.lab.bench.check_alike",
        "hotloop.lab.bench.warm_up_subjects",
        "hotloop.lab.measure.sides.play",
        "hotloop.lab.bench.compare_stored",
        "hotloop.lab.bench.goal_of",
        "hotloop.lab.bench.judge",
        "hotloop.lab.measure.record.describe_work",
        "hotloop.report.kinds.bench.bench",
        "hotloop.report.kinds.bench.comparisons",
        "hotloop.report.terminal.draw",
        "hotloop.cli.results.save",
        "hotloop.cli.results.keep_baseline",
    ],
)
@pytest.mark.parametrize("error", [RuntimeError, AssertionError, SystemExit])
def test_nothing_that_breaks_looks_like_a_verdict(
    bench: Command, before: str, monkeypatch: pytest.MonkeyPatch, place: str, error: type[BaseException]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error(3)

    monkeypatch.setattr(place, broken)
    assert bench("--baseline", before, "--save-baseline", "main").code == ExitCode.FAULT


@needs_native
def test_a_path_that_was_not_taken_fails_with_what_was_counted(bench: Command) -> None:
    said = bench("pretend=1")
    assert said.code == ExitCode.FAULT
    assert "claimed but 0.0% of the steps ran natively" in said.err
    assert "native_steps 0, reference_steps 80 of 80" in said.err
