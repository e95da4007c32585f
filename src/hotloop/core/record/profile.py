"""What a profile holds: phases, slow steps, findings of probes, and the stages of a run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hotloop.core.errors import Code, Notice, notice
from hotloop.core.record.codec import Amount, Count, Interval
from hotloop.core.settings import Target
from hotloop.core.time_tree import How, TimeTree, grow

# Calls that actions were drawn for, calls that were played of them, and how often that came in a row.
Draw = tuple[Count, Count, Count]

Repeated = Literal["slow again", "not slow again", "cannot tell"]

WALL = "wall"  # From call to return, as the caller sees it
PYTHON = "wall/python"  # What the wall has beyond the step: Python, and the binding to native code

# What Hotloop itself takes: between the windows of a run, or to read the phases that an env reports.
INSTRUMENT = "wall/hotloop"

OWN_STEP = "its own step"  # The row of a step as the env times it itself
STEP = "wall/step"  # The whole step inside the batch; its phases are below it


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How one phase varied from call to call; a percentile is absent where the calls are too few for it."""

    path: str
    calls: Count
    p50_ns: float | None = None
    p95_ns: float | None = None
    p99_ns: float | None = None
    max_ns: float | None = None

    @property
    def points(self) -> tuple[float | None, ...]:
        return self.p50_ns, self.p95_ns, self.p99_ns, self.max_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowStep:
    """One of the slowest step calls."""

    rank: Count  # What `--replay-slow` calls it by
    step: Count  # The call's number since the reset, from 1: every env's step in a batch
    env: Count | None  # The one env that is to blame, where one can be told
    seed: Count
    wall_ns: Count
    phases: dict[str, int]  # Path to ns of this call; in the warm-up only the whole
    resets: Count  # Episodes that began in it
    gc_ns: Count  # Of it that garbage was collected for
    collections: Count
    # Involuntary context switches during the call; None if not measured.
    put_off: Count | None = None
    check_step: Count
    # What all envs gave back after that step, hashed: a run that comes to the same took the same way.
    check: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """Garbage collection in the instrumented passes."""

    collections: Count = 0
    total_ns: Count = 0
    longest_ns: Count = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """What single step calls took, and everything needed to come to one of them again."""

    relative_error: Amount  # Of every percentile, at most
    calls: Count  # Step calls looked at, those with a reset included
    missed: Count = 0  # Spans and marks there was no room for
    typical_ns: Amount | None = None  # The median call without a reset
    typical_reset_ns: Amount | None = None
    steps: tuple[SlowStep, ...] = ()  # The slowest calls in which no episode began
    resets: tuple[SlowStep, ...] = ()  # The slowest calls in which one did
    warmup: tuple[SlowStep, ...] = ()  # The slowest calls of the warm-up, which nothing else is measured in
    # Phases of those calls; the phases of the others have theirs in the profile's own rows.
    reset_spreads: tuple[Spread, ...] = ()
    pauses: Pauses = field(default_factory=Pauses)
    target: str
    given: dict[str, Any]
    policy: str  # As they were given
    draws: tuple[Draw, ...] = ()  # How the actions were drawn, from the reset on

    @property
    def profiled_target(self) -> Target:
        """What was profiled."""
        return Target(self.target, self.given)


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunResult:
    """A slow step that was run again."""

    run_id: str  # Of the profile it is from
    slow: SlowStep
    typical_ns: Amount  # The median step on the way to it, this time
    typical_then_ns: Amount  # What a step of its kind took in that profile
    wall_ns: tuple[Count, ...]  # Each time it was run
    gc_ns: tuple[Count, ...]
    phases: dict[str, int]  # Of the run that took the median time
    how: str  # How it was run more than once
    same_way: bool | None  # Whether the run came to the same state; None where it was not seen
    unlike: tuple[str, ...] = ()  # What differs from the profile: machine, code
    outcome: Repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase(Spread):
    """One row of a profile: names from the outermost inwards, joined by `/`."""

    total_ns: int
    mean_ns: float
    share: float  # Of the wall time
    cpu_ns: Count | None = None  # CPU time of the row's thread; None if not measured
    rounds_ns: tuple[int, ...] = ()  # Its time in each round, or window, where that was kept

    @property
    def worked(self) -> float | None:
        """The share of its time that its thread was on a core; None if not measured."""
        return self.cpu_ns / self.total_ns if self.cpu_ns is not None and self.total_ns > 0 else None


def describe_times(
    tree: TimeTree,
    rounds: Sequence[TimeTree] = (),
    spreads: Mapping[str, Spread] | None = None,
    *,
    root: str = WALL,
) -> tuple[Phase, ...]:
    """Return the rows of a tree as a record keeps them: below `root`, with their time in each round."""
    each_round = [{row.path: row.total_ns for row in each.walk()} for each in rounds]
    phases: list[Phase] = []
    for row in tree.walk():
        path = f"{root}/{row.path}".rstrip("/")
        spread = (spreads or {}).get(path, Spread(path=path, calls=0))
        is_in_rounds = any(row.path in times for times in each_round)
        phases.append(
            Phase(
                path=path,
                calls=row.calls,
                total_ns=row.total_ns,
                mean_ns=row.total_ns / max(row.calls, 1),
                p50_ns=spread.p50_ns,
                p95_ns=spread.p95_ns,
                p99_ns=spread.p99_ns,
                max_ns=spread.max_ns,
                share=row.total_ns / max(tree.total_ns, 1),
                cpu_ns=row.cpu_ns,
                rounds_ns=tuple(times.get(row.path, 0) for times in each_round) if is_in_rounds else (),
            )
        )
    return tuple(phases)


def read_times(phases: Iterable[Phase], how: How = "sync") -> TimeTree | None:
    """Return the tree of the rows that a record keeps below its wall; None if nothing was timed."""
    rows = [
        TimeTree(
            path=phase.path.removeprefix(WALL).lstrip("/"),
            calls=phase.calls,
            total_ns=phase.total_ns,
            cpu_ns=phase.cpu_ns,
        )
        for phase in phases
        if f"{phase.path}/".startswith(f"{WALL}/")
    ]
    whole = next((row for row in rows if not row.path), None)
    return replace(whole, children=grow(rows), how=how) if whole else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """What the instrument cost: time with it over time without."""

    ratio: Amount
    ci95: Interval | None
    mark_ns: Amount | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of raw values; the columns' names end in their units, by which reports draw them."""

    title: str
    columns: tuple[str, ...]  # `function`, `calls`, `total_ns`, `peak_bytes`, `share`, ..
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one probe found in its own pass."""

    probe: str
    facts: dict[str, Any] = field(default_factory=dict)  # Single values, named like columns
    tables: tuple[Table, ...] = ()
    # Endings of the files beside the record: its own name without `.json`, a dot, and this.
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """What a run did between one look and the next, in order."""

    wall_ns: tuple[Count, ...] = ()
    updates: tuple[Count, ...] = ()
    env_steps: tuple[Count, ...] = ()
    rss_bytes: tuple[Count, ...] = ()  # Memory at the end of each
    # What the loop's thread waited for a core; 0 if the system does not say.
    queued_ns: tuple[Count, ...] = ()
    stages: tuple[Count, ...] = ()  # The number of the stage that each belongs to; empty if the run is one


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stretch of a run whose rows and speeds are a population of their own, called a phase of the run."""

    name: str
    is_declared: bool  # Whether the loop named it; otherwise it lies between two change points
    env_steps: Count
    updates: Count
    phases: tuple[Phase, ...]  # The rows of its time; shares are of its own wall
    unaccounted_ns: int


def profiled_notice(on: int, windows: int) -> Notice:
    """Return that torch's profiler was on in some windows, and which ones the speed is of."""
    if on == windows:
        return notice(Code.PROFILED, windows="every window", speed="with it")
    return notice(Code.PROFILED, windows=f"{on} of {windows} windows", speed="of the others")
