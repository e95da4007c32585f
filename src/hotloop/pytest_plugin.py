"""The pytest fixture `hotloop_bench`: a test that holds the speed of a function or a target.

    def test_parsing_is_quick(hotloop_bench):
        hotloop_bench(parse, "a b c", limit=0.001)          # seconds of a call, at most

    def test_the_world_is_fast(hotloop_bench):
        hotloop_bench("grid/toy", limit=1_000_000)          # env-steps a second, at least

    def test_what_a_query_takes(hotloop_bench):
        hotloop_bench(query, 3)                             # no limit: it is only measured

A miss is measured again before the test fails. Where a measurement cannot tell, that is a warning and no
failure; a table at the end has every measurement. pytest-benchmark's --benchmark-only, --benchmark-skip,
--benchmark-disable, --benchmark-min-rounds and --benchmark-max-time are heeded if that plugin is installed.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from hotloop.core.record import Record
    from hotloop.core.record.experiments import BudgetResult, Estimate

ROUNDS = 12

ROUND_S = 0.02  # What a round takes about, unless a call is longer

MOST_CALLS = 100_000

SECONDS, SPEED = "seconds", "env_steps_per_s"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkOptions:
    """What pytest-benchmark's options ask for, where they mean the same."""

    skip: bool = False
    disable: bool = False  # Call once and measure nothing
    rounds: int = ROUNDS
    round_s: float = ROUND_S

    @classmethod
    def of(cls, config: pytest.Config) -> "BenchmarkOptions":
        def given(name: str) -> Any:
            return config.getoption(f"benchmark_{name}", default=None)

        rounds = max(ROUNDS, int(given("min_rounds") or 0))
        most = float(given("max_time") or 0) / rounds
        return cls(
            skip=bool(given("skip")),
            disable=bool(given("disable")) and not given("enable"),
            rounds=rounds,
            round_s=min(ROUND_S, most) if most else ROUND_S,
        )


class NoiseWarning(UserWarning):
    """A measurement that was too noisy to say whether its limit is met."""


class BenchRow(NamedTuple):
    """A measurement in the table at the end."""

    name: str
    value: str
    around: str
    limit: str
    standing: str


RESULTS = pytest.StashKey[list[BenchRow]]()  # The measurements of a run


class Bench:
    """What the fixture gives: call it with a function and its arguments, or with a target."""

    def __init__(self, name: str, options: BenchmarkOptions, results: list[BenchRow] | None = None) -> None:
        self.name, self.options, self._results = name, options, [] if results is None else results
        self.held: BudgetResult | None = None
        """How the last one stood to its limit."""

    def __call__(
        self, what: Any, *given: Any, limit: float | None = None, owner: str = "", **keys: Any
    ) -> Any:
        """Measure it and hold it to a limit; returns what a function returns, or the record of a target.

        Of a function `limit` is the most seconds that a call may take; of a target, given by its name, the
        least env-steps a second, and keys are the target's. None only measures.
        """
        if self.options.skip:
            pytest.skip("--benchmark-skip")
        if isinstance(what, str):
            return self._target(what, keys, limit, owner)
        answer = what(*given, **keys)
        if not self.options.disable:
            self._hold(SECONDS, limit, owner, lambda: seconds_of(what, given, keys, self.options))
        return answer

    def _target(self, name: str, keys: dict[str, Any], limit: float | None, owner: str) -> "Record | None":
        from hotloop.lab.api import bench

        records: list[Record] = []

        def speeds() -> tuple[float, ...]:
            records.append(bench(name, rounds=self.options.rounds, **keys))
            return records[-1].values[SPEED]

        if not self.options.disable:
            self._hold(SPEED, limit, owner, speeds)
        return records[-1] if records else None

    def _hold(
        self, metric: str, limit: float | None, owner: str, measure: Callable[[], tuple[float, ...]]
    ) -> None:
        """Measure as often as the gate would, and fail, warn or pass as it says."""
        from hotloop.core.clock import utc_now
        from hotloop.core.project import Budget
        from hotloop.judge.checks import estimate, hold, needs_another, settle

        if limit is None:
            self._results.append(row_of(self.name, metric, estimate(measure())))
            return
        # As hotloop.toml would have it; a function's time is like that of a phase.
        known, scale = (SPEED, 1.0) if metric == SPEED else ("phase:call", 1e9)
        budget = Budget(name=self.name, target="", metric=known, limit=limit * scale, owner=owner)
        runs: list[BudgetResult] = []
        while not runs or needs_another(runs):
            runs.append(hold(budget, utc_now().date(), now=measure()))
        self.held = settle(runs)
        assert self.held.value is not None
        found = row_of(self.name, metric, self.held.value, self.held.limit, self.held.standing)
        self._results.append(found)
        if self.held.standing == "missed":
            pytest.fail(words(self.held), pytrace=False)
        if self.held.standing != "met":
            warnings.warn(NoiseWarning(words(self.held)), stacklevel=4)


def row_of(
    name: str, metric: str, value: "Estimate", limit: float | None = None, standing: str = "measured"
) -> BenchRow:
    """Return a measurement as the table shows it."""
    told = told_as(metric == SPEED)
    return BenchRow(
        name=name,
        value=told(value.value),
        around=f"[{told(value.low)}, {told(value.high)}]",
        limit="" if limit is None else told(limit),
        standing=standing,
    )


def told_as(is_speed: bool) -> Callable[[float], str]:
    from hotloop.report.section import took

    return (lambda speed: f"{speed:,.0f} env-steps/s") if is_speed else took


def seconds_of(
    function: Callable[..., Any], given: tuple[Any, ...], keys: dict[str, Any], options: BenchmarkOptions
) -> tuple[float, ...]:
    """Nanoseconds of a call, one value a round, after as many calls as a round has."""
    from hotloop.core.clock import now_ns
    from hotloop.core.turn_clock import collect_rest
    from hotloop.lab.measure.sides import no_collection

    def stretch(calls: int) -> int:
        begin = now_ns()
        for _ in range(calls):
            function(*given, **keys)
        return now_ns() - begin

    calls, taken = 1, stretch(1)
    while taken < options.round_s * 1e9 and calls < MOST_CALLS:
        calls *= 2
        taken = stretch(calls)
    values = []
    with no_collection():
        for _ in range(options.rounds):
            values.append(stretch(calls) / calls)
            collect_rest()
    return tuple(values)


def words(held: "BudgetResult") -> str:
    """What a test says of a limit that was not met."""
    value, limit = held.value, held.limit
    assert value is not None
    assert limit is not None
    side, unit = ("at least", "") if held.more_is_better else ("at most", " a call")
    told = told_as(held.more_is_better)
    whom = f"; ask {held.owner}" if held.owner else ""
    around = f"{told(value.value)} [{told(value.low)}, {told(value.high)}]{unit}"
    return f"{held.name}: {around}, limit {side} {told(limit)}: {held.standing}, {held.why}{whom}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --benchmark-only pytest-benchmark skips what does not use its own fixture: ours is one, too."""
    if not config.getoption("benchmark_only", default=None):
        return
    for item in items:
        if "hotloop_bench" in getattr(item, "fixturenames", ()):
            item.own_markers = [
                mark
                for mark in item.own_markers
                if mark.name != "skip" or "--benchmark-only" not in str(mark.kwargs.get("reason"))
            ]


@pytest.fixture
def hotloop_bench(request: pytest.FixtureRequest) -> Bench:
    """Holds the speed of a function or a target to a limit: `hotloop_bench(function, limit=0.001)`."""
    results = request.config.stash.setdefault(RESULTS, [])
    return Bench(request.node.name, BenchmarkOptions.of(request.config), results)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Show every measurement in one table."""
    rows = config.stash.get(RESULTS, [])
    if not rows:
        return
    cells = [("test", "median", "95% interval", "limit", ""), *rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    terminalreporter.write_sep("-", "hotloop_bench")
    for line in cells:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        terminalreporter.write_line("  ".join(padded).rstrip())
