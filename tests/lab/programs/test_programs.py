"""Benches and comparisons of programs, over a launcher that runs nothing."""

import random
from collections.abc import Callable
from typing import Any, Self

import pytest

from hotloop.core.errors import ExitCode, InputError, Notice
from hotloop.core.record import Record
from hotloop.judge.compare import compare_stored
from hotloop.lab.measure.loop import Plan
from hotloop.lab.programs import measure as lab
from hotloop.lab.programs.launch import Program, ProgramRun, parse_metric
from hotloop.lab.programs.measure import bench, compare
from hotloop.options.bench import BenchProgramOptions as Options

A, B, C = (Program((name,)) for name in "abc")
SPS = parse_metric(r"sps=SPS: ([\d.]+)")
MS = 1_000_000


class Pretender:
    """A launcher whose programs take what somebody says they take, with a little noise."""

    def __init__(self, ms: dict[str, float], after: Callable[[int], None] = lambda _: None) -> None:
        self.ms, self.after, self.ran = ms, after, list[str]()
        self.noise = random.Random(20)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def close(self) -> None: ...

    def notices(self) -> tuple[Notice, ...]:
        return ()

    def run(self, program: Program) -> ProgramRun:
        self.after(len(self.ran))
        self.ran.append(program.name)
        wall_ns = round(self.ms[program.name] * self.noise.uniform(0.995, 1.005) * MS)
        said = f"SPS: {1e12 / wall_ns}\n" * 2
        return ProgramRun(wall_ns=wall_ns, cpu_ns=wall_ns // 2, rss_peak_bytes=1 << 20, printed=said)


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Pretender]:
    def install(**more: Any) -> Pretender:
        made = Pretender(**more)
        monkeypatch.setattr(lab, "Launcher", lambda: made)
        return made

    return install


def test_a_bench_has_wall_cpu_and_memory_of_each_round(pretend: Callable[..., Pretender]) -> None:
    made = pretend(ms={"a": 100})
    record = bench(A, Options(rounds=7, warmup=2))
    assert made.ran == ["a"] * 9
    assert record.metrics["wall_ns"].median == pytest.approx(100 * MS, rel=0.01)
    assert record.values["cpu_share"] == pytest.approx([0.5] * 7)
    assert record.metrics["rss_peak_bytes"].median == 1 << 20
    assert (record.work.runs, record.path.counters) == (7, {"runs": 7, "exit_status": 0})
    assert (record.target.name, record.target.impl, record.method.headline) == ("a", "program", "runs_per_s")
    assert (record.method.rounds, record.method.warmup, record.exit_code) == (7, 2, ExitCode.FINE)
    assert Record.from_json(record.to_json()) == record


def test_a_word_that_is_a_whole_script_is_no_file(pretend: Callable[..., Pretender]) -> None:
    script = Program(("python", "-c", "pass\n" * 1000))
    pretend(ms={script.name: 100})
    assert bench(script, Options(rounds=6)).work.runs == 6


def test_a_metric_is_the_median_of_each_run_or_the_series_of_one(pretend: Callable[..., Pretender]) -> None:
    pretend(ms={"a": 100})
    record = bench(A, Options(rounds=6), metric=SPS)
    assert record.method.headline == "sps"
    assert record.metrics["sps"].median == pytest.approx(10_000, rel=0.01)
    (found,) = record.findings
    assert [(row[0], row[1], len(row[2])) for row in found.tables[0].rows] == [(n, 0, 2) for n in range(1, 7)]
    assert Record.from_json(record.to_json()) == record
    one = bench(A, Options(rounds=1), metric=SPS)
    assert len(one.values["sps"]) == 2
    assert len(one.values["wall_ns"]) == 1
    timed = bench(A, Options(rounds=6), metric=parse_metric(r"t=SPS: ([\d.]+)", less_is_better=True))
    assert timed.values[timed.method.headline] == pytest.approx([1 / value for value in timed.values["t"]])


def test_a_slow_program_gets_fewer_rounds_and_six_at_least(
    pretend: Callable[..., Pretender], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(ms={"a": 100})
    monkeypatch.setattr(lab, "BOX_NS", 1)
    assert bench(A, Options()).method.rounds == 6
    assert bench(A, Options(rounds=8)).method.rounds == 8


def test_ctrl_c_leaves_the_rounds_there_were(pretend: Callable[..., Pretender]) -> None:
    def interrupt(done: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    pretend(ms={"a": 100, "b": 100}, after=interrupt)
    record = bench(A, Options(rounds=8))
    assert (record.partial, record.work.runs, record.exit_code) == (True, 3, ExitCode.INTERRUPTED)
    pretend(ms={"a": 100, "b": 100}, after=interrupt)
    compared = compare([A, B], Plan(), rounds=6)
    assert (compared.partial, compared.method.rounds, compared.exit_code) == (True, 0, ExitCode.INTERRUPTED)


def test_a_program_is_held_against_a_baseline_of_the_same_metric(pretend: Callable[..., Pretender]) -> None:
    pretend(ms={"a": 100})
    before = bench(A, Options(rounds=8))
    pretend(ms={"a": 200})
    after = bench(A, Options(rounds=8), baselines=(before,))
    assert after.comparisons[0].ratio is not None
    assert after.comparisons[0].ratio.estimate == pytest.approx(0.5, rel=0.02)
    with pytest.raises(InputError, match=r"metric \(runs_per_s against sps\)"):
        bench(A, Options(rounds=8), metric=SPS, baselines=(before,))
    pretend(ms={"b": 100})
    other = bench(B, Options(rounds=8))
    with pytest.raises(InputError, match="target a against b"):
        compare_stored(before, other)


@pytest.mark.parametrize("metric", [None, SPS])
@pytest.mark.parametrize(
    ("ms", "outcome", "code"),
    [(110, "slower", ExitCode.REGRESSION), (80, "faster", ExitCode.FINE), (100, "same", ExitCode.FINE)],
)
def test_programs_are_compared_in_turns_by_wall_or_by_what_they_print(
    pretend: Callable[..., Pretender], ms: float, outcome: str, code: ExitCode, metric: Any
) -> None:
    made = pretend(ms={"a": 100, "b": ms})
    record = compare([A, B], Plan(), rounds=12, metric=metric)
    (comparison,) = record.comparisons
    assert (comparison.outcome, record.exit_code) == (outcome, code)
    assert comparison.ratio is not None
    assert comparison.ratio.estimate == pytest.approx(100 / ms, rel=0.01)
    assert comparison.noise is not None
    assert comparison.noise.estimate == pytest.approx(1, abs=0.01)
    assert (comparison.second is not None) == (outcome != "same")
    per_round = [made.ran[2 + 3 * number : 5 + 3 * number] for number in range(12)]
    assert all(sorted(each) == ["a", "a", "b"] for each in per_round)
    assert len({tuple(each) for each in per_round}) > 1


def test_several_programs_are_each_held_against_the_first(pretend: Callable[..., Pretender]) -> None:
    pretend(ms={"a": 100, "b": 100, "c": 150})
    record = compare([A, B, C], Plan(), rounds=12)
    assert [each.outcome for each in record.comparisons] == ["same", "slower"]
    assert record.exit_code == ExitCode.REGRESSION
    assert {"a.wall_ns", "b.wall_ns", "c.wall_ns", "again.wall_ns", "second.c.wall_ns"} <= {*record.values}


def test_a_comparison_ends_when_the_time_is_over_or_all_is_settled(pretend: Callable[..., Pretender]) -> None:
    pretend(ms={"a": 100, "b": 100})
    assert compare([A, B], Plan(budget_ns=1)).method.rounds == 6
    assert compare([A, B], Plan()).method.rounds == 12


def test_one_program_or_too_many_are_refused() -> None:
    with pytest.raises(InputError, match="1 programs are given: compare takes 2 to 8"):
        compare([A], Plan())
