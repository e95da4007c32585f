import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from hotloop import pytest_plugin
from hotloop.pytest_plugin import Bench, BenchmarkOptions, BenchRow, NoiseWarning


class Config:
    """A configuration that knows some options of pytest-benchmark."""

    def __init__(self, **given: Any) -> None:
        self._given = given

    def getoption(self, name: str, default: Any = None) -> Any:
        return self._given.get(name.removeprefix("benchmark_"), default)


def options(**given: Any) -> BenchmarkOptions:
    return BenchmarkOptions.of(Config(**given))  # type: ignore[arg-type]


def measuring(monkeypatch: pytest.MonkeyPatch, *runs: float) -> Iterator[float]:
    """Have every run of a function take so many ns a call, the last of them for ever."""
    left = iter((*runs[:-1], *repeat(runs[-1], 5)))
    monkeypatch.setattr(pytest_plugin, "seconds_of", lambda *_: (next(left),) * 12)
    return left


def held(bench: Bench) -> str:
    assert bench.held is not None
    return bench.held.standing


def test_a_function_within_its_limit_passes_and_returns_what_it_returns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measuring(monkeypatch, 900.0)
    bench = Bench("test", BenchmarkOptions())
    assert bench(int, "12", limit=1e-6) == 12
    assert held(bench) == "met"


def test_one_beyond_it_fails_after_a_second_run_and_says_whom_to_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measuring(monkeypatch, 1_100.0)
    bench = Bench("test", BenchmarkOptions())
    with pytest.raises(pytest.fail.Exception, match=r"limit at most 1.00 µs: missed, .*second run.*; ask me"):
        bench(int, limit=1e-6, owner="me")


def test_what_cannot_be_told_is_a_warning_and_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    measuring(monkeypatch, 1_100.0, 900.0)
    with pytest.warns(NoiseWarning, match="missed by one run and met by another"):
        assert Bench("test", BenchmarkOptions())(int, "3", limit=1e-6) == 3


def test_without_a_limit_a_function_is_only_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    measuring(monkeypatch, 900.0)
    results: list[BenchRow] = []
    assert Bench("test", BenchmarkOptions(), results)(int, "12") == 12
    assert [(each.value, each.limit, each.standing) for each in results] == [("900 ns", "", "measured")]


def test_a_target_is_held_to_its_least_speed() -> None:
    bench = Bench("test", BenchmarkOptions(rounds=6))
    record = bench("grid/toy", limit=1.0, num_envs=1)
    assert record.target.name == "grid/toy"
    assert held(bench) == "met"


class Collected:
    """A test as pytest has collected it, which pytest-benchmark skips and so does its author."""

    def __init__(self, *fixtures: str) -> None:
        self.fixturenames = fixtures
        only = pytest.mark.skip(reason="Skipping non-benchmark (--benchmark-only active).")
        self.own_markers = [only.mark, pytest.mark.skip(reason="not on Mondays").mark]


@pytest.mark.parametrize(
    ("only", "fixture", "left"),
    [(True, "hotloop_bench", 1), (True, "tmp_path", 2), (False, "hotloop_bench", 2)],
)
def test_only_benchmarks_are_ours_too(only: bool, fixture: str, left: int) -> None:
    test: Any = Collected(fixture)
    config: Any = Config(only=only)
    pytest_plugin.pytest_collection_modifyitems(config, [test])
    assert len(test.own_markers) == left


def test_options_of_pytest_benchmark_are_heeded_where_they_mean_the_same() -> None:
    assert options() == BenchmarkOptions()
    assert options(min_rounds=30).rounds == 30
    assert options(max_time="0.12").round_s == pytest.approx(0.01)
    assert options(disable=True).disable
    assert not options(disable=True, enable=True).disable
    with pytest.raises(pytest.skip.Exception):
        Bench("test", options(skip=True))(int, limit=1)
    assert Bench("test", options(disable=True))(int, limit=0) == 0


def test_calls_are_timed_in_rounds_of_enough_of_them() -> None:
    calls: list[int] = []
    values = pytest_plugin.seconds_of(calls.append, (1,), {}, BenchmarkOptions(round_s=1e-6))
    assert len(values) == 12
    assert all(value > 0 for value in values)
    assert len(calls) >= 13


def test_pytest_finds_the_fixture(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "def test_fast(hotloop_bench):\n    hotloop_bench(int, limit=10)\n"
        "def test_slow(hotloop_bench):\n    hotloop_bench(int, limit=1e-12, owner='me')\n"
    )
    words = ["-m", "pytest", "-q", "-p", "hotloop.pytest_plugin", "-p", "no:cacheprovider", str(tmp_path)]
    alone = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # it may be installed, or not
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, env=alone, capture_output=True, text=True, check=False
    )
    assert "1 failed, 1 passed" in done.stdout
    assert "test_slow: " in done.stdout
    rows = [
        line.split() for line in done.stdout.splitlines() if line.startswith(("test_fast ", "test_slow "))
    ]
    assert [(row[0], row[-1]) for row in rows] == [("test_fast", "met"), ("test_slow", "missed")]
