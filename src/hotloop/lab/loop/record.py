"""The windows of a loop, the phases of its run between change points, its record and its trace."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.core.clock import utc_now
from hotloop.core.errors import Code, InputError, Notice, notice
from hotloop.core.machine import code, machine, project
from hotloop.core.record import Method, Record, new_record
from hotloop.core.record.metadata import CodeInfo as RanCode
from hotloop.core.record.metadata import Described, Machine, PathRan, Work
from hotloop.core.record.profile import (
    Finding,
    Looks,
    Overhead,
    Pauses,
    Stage,
    describe_times,
    profiled_notice,
)
from hotloop.core.settings import hash_of
from hotloop.core.time_tree import How, Slice, TimeTree, Trace, add
from hotloop.judge.course import find_changes
from hotloop.judge.expect import EXPECT
from hotloop.judge.judge import judge
from hotloop.lab.profile.calls import Timeline, read_spans
from hotloop.lab.profile.trace import SPAN, names_of, nest
from hotloop.probes import resources
from hotloop.stats.summary import with_metrics

if TYPE_CHECKING:
    from hotloop.lab.loop.run import LoopOptions

KIND = "run"

IMPL = "foreign"

CLOCK = "perf_counter_ns; regions "  # What a method says of its clock, before how the regions were timed

WAITED = "perf_counter_ns, after waiting at every boundary; regions "

# What the paths of spans of other threads begin with: they are beside the wall and no part of it.
THREADS = "threads"

JAX = "give hotloop.run a wait= that blocks on what the loop computes, such as jax.block_until_ready"

LONGER = "run longer, or give hotloop.run a profiler= that begins sooner"

GPU_LATE = "begin the run when the model is on the GPU, or give hotloop.run timing='events'"

MOST_WINDOWS = 8_192  # That a run keeps apart; beyond that, neighbours are put together
MOST_ROUNDS = 64  # Whose trees are kept apart: as many as an interval needs, and no more
MOST_LOOKS = 256  # That a run keeps; beyond that, neighbours of one stage are put together
UPDATES, STEPS, SAMPLES = "updates", "env_steps", "samples"  # What is counted

Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowCounts:
    """What was counted in one window, or in several, and the time it took."""

    counts: Counts
    wall_ns: int

    def per_s(self, name: str) -> float:
        return self.counts.get(name, 0) * 1e9 / max(self.wall_ns, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopWindow:
    """One window, as an observer is told of it."""

    name: str
    updates: int  # Of the run so far
    steps: int  # Of the run so far
    counts: Counts
    times: TimeTree

    def per_s(self, name: str) -> float:
        return self.counts.get(name, 0) * 1e9 / max(self.times.total_ns, 1)

    def values(self) -> dict[str, float]:
        """Return all of it by name, for logs that others draw: ms of an update, and speeds."""
        turns = max(self.counts.get(UPDATES, 0), 1)
        speeds = {f"{name}_per_s": self.per_s(name) for name, count in self.counts.items() if count}
        rows = {f"ms_per_update/{row.path}": row.total_ns / 1e6 / turns for row in self.times.rows}
        rest = {"ms_per_update/unaccounted": self.times.unaccounted_ns / 1e6 / turns}
        return {**speeds, "ms_per_update": self.times.total_ns / 1e6 / turns, **rows, **rest}


class Windows:
    """All windows of a run, of bounded size however long it is."""

    def __init__(self) -> None:
        self.kept: list[WindowCounts] = []
        """Those in which something was counted."""
        self.times: TimeTree | None = None
        """Of all of them, also where nothing was counted."""
        self.rounds: list[TimeTree] = []
        """Of each, as long as they are few enough to keep apart."""

    def add(self, counts: Counts, times: TimeTree) -> None:
        self.times = add([self.times, times] if self.times else [times])
        if any(counts.values()):
            self.kept.append(WindowCounts(counts=counts, wall_ns=times.total_ns))
            self.rounds.append(times)
        if len(self.rounds) >= MOST_ROUNDS:
            pairs = zip(self.rounds[::2], self.rounds[1::2], strict=True)
            self.rounds = [each for pair in pairs if (each := add(pair))]
        if len(self.kept) >= MOST_WINDOWS:
            self.kept = [
                WindowCounts(counts=total([a.counts, b.counts]), wall_ns=a.wall_ns + b.wall_ns)
                for a, b in zip(self.kept[::2], self.kept[1::2], strict=True)
            ]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLook:
    """What was counted and timed since the look before, all in one stage."""

    counts: Counts
    times: TimeTree
    stage: str  # The phase that the loop has declared; empty if none
    rss_bytes: int
    queued_ns: int = 0  # What its thread waited for a core


def keep_few(looks: list[LoopLook]) -> list[LoopLook]:
    """Return the looks with neighbours put together, if they are too many to keep apart."""
    if len(looks) < MOST_LOOKS:
        return looks
    kept: list[LoopLook] = []
    can_join = False
    for look in looks:
        can_join = can_join and kept[-1].stage == look.stage
        if can_join:
            before = kept.pop()
            both = replace(
                look,
                counts=total([before.counts, look.counts]),
                times=add([before.times, look.times]) or look.times,
                queued_ns=before.queued_ns + look.queued_ns,
            )
        kept.append(both if can_join else look)
        can_join = not can_join
    return kept


def total(counts: Sequence[Counts]) -> dict[str, int]:
    names = dict.fromkeys(name for each in counts for name in each)
    return {name: sum(each.get(name, 0) for each in counts) for name in names}


def whole_number(name: str, given: int) -> int:
    """Return what was given if it is a whole number of at least 0; otherwise raise InputError."""
    if given.__class__ is int and given >= 0:
        return given
    try:
        number = index(given)  # NumPy's and torch's whole numbers are welcome
    except TypeError:
        number = -1
    if number < 0:
        raise InputError(f"{name}={given!r} does not fit: expected a whole number of at least 0")
    return number


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLooks:
    """One phase of a run, with its looks in order."""

    name: str
    is_declared: bool
    looks: tuple[LoopLook, ...]

    def count(self, name: str) -> int:
        """Return how often something was counted in it."""
        return sum(look.counts.get(name, 0) for look in self.looks)


def stages_of(looks: Sequence[LoopLook]) -> tuple[StageLooks, ...]:
    """Return the phases of a run; nothing if it is one population."""
    names = dict.fromkeys(look.stage for look in looks)
    if any(names):
        declared = [
            StageLooks(
                name=name or "no phase",
                is_declared=True,
                looks=tuple(look for look in looks if look.stage == name),
            )
            for name in names
        ]
        return tuple(each for each in declared if each.count(UPDATES) or each.count(STEPS))
    changes = find_changes([look.times for look in looks])
    if not changes:
        return ()
    stages = list[StageLooks]()
    for first, last in pairwise((0, *changes, len(looks))):
        before, through = (sum(look.counts.get(UPDATES, 0) for look in looks[:end]) for end in (first, last))
        name = f"updates {before + 1:,} to {through:,}"
        if through == before:  # the loop counts none
            name = f"looks {first + 1} to {last}"
        stages.append(StageLooks(name=name, is_declared=False, looks=tuple(looks[first:last])))
    return tuple(stages)


def describe_looks(looks: Sequence[LoopLook], stages: Sequence[StageLooks]) -> Looks:
    """Return speed and memory from look to look, as a record keeps them."""
    numbers = {id(look): number for number, stage in enumerate(stages) for look in stage.looks}
    kept = [look for look in looks if id(look) in numbers] if stages else looks
    return Looks(
        wall_ns=tuple(max(look.times.total_ns, 0) for look in kept),
        updates=tuple(look.counts.get(UPDATES, 0) for look in kept),
        env_steps=tuple(look.counts.get(STEPS, 0) for look in kept),
        rss_bytes=tuple(look.rss_bytes for look in kept),
        queued_ns=tuple(look.queued_ns for look in kept),
        stages=tuple(numbers[id(look)] for look in kept) if stages else (),
    )


def describe_stages(stages: Sequence[StageLooks]) -> Iterator[Stage]:
    for stage in stages:
        rounds = [look.times for look in stage.looks]
        times = add(rounds)
        while len(rounds) > MOST_ROUNDS:
            rounds = [each for at in range(0, len(rounds), 2) if (each := add(rounds[at : at + 2]))]
        if times is not None:
            yield Stage(
                name=stage.name,
                is_declared=stage.is_declared,
                env_steps=stage.count(STEPS),
                updates=stage.count(UPDATES),
                phases=describe_times(replace(times, calls=1), rounds),
                unaccounted_ns=times.unaccounted_ns,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMetadata:
    """Machine, code and date, taken down before the loop begins."""

    date: datetime
    machine: Machine
    code: RanCode

    @classmethod
    def now(cls) -> "RunMetadata":
        """As they are here and now; the loop's project is that of the current folder."""
        ran = code(None)
        ran["project"] = project(Path.cwd())
        return cls(date=utc_now(), machine=machine(), code=ran)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What is known of a run that has ended."""

    options: "LoopOptions"
    origin: RunMetadata
    windows: Windows
    looks: Sequence[LoopLook] = ()
    # Windows in which torch's profiler was on; they are in no speed and no row if there are others.
    profiled: int = 0
    torch: Finding | None = None
    no_trace: str = ""  # Why torch's profiler found nothing, if it was on
    counts: Mapping[str, int]
    left_open: tuple[str, ...]
    threads: tuple[TimeTree, ...]
    how: How
    hosted: bool  # Whether its first windows were read by the host's clock though a GPU worked
    mark_ns: float
    thread_clock_ns: float  # What one reading of a thread's CPU clock takes
    samples: Sequence[resources.ResourceSample]
    pauses: Pauses
    broken: str | None  # What ended the loop before its end


def record_of(found: RunResult) -> Record:
    """Return the judged record: a round is a window; a step is one agent's, as far as is known."""
    origin, options, times = found.origin, found.options, found.windows.times
    windows, counts = found.windows.kept, found.counts
    stages = stages_of(found.looks)
    expected = {phase: list(ends) for phase, ends in options.expect.items()}
    usage = resources.used(resources.describe(found.samples, 0))
    made = new_record(
        KIND,
        now=origin.date,
        code=origin.code,
        target=described(options, found.how),
        name=options.name,
        label=options.name,
        partial=found.broken is not None,
        machine=origin.machine,
        method=Method(
            rounds=len(windows),
            iterations=counts[STEPS] // max(len(windows), 1),
            warmup=0,
            threads=1,
            order="single",
            clock=f"{WAITED if options.wait else CLOCK}{found.how}",
            policy="own loop",
            garbage="life",
        ),
        work=Work(env_steps=counts[STEPS], agent_steps=counts[STEPS], updates=counts[UPDATES]),
        path=PathRan(requested=IMPL, ran={IMPL: 1.0} if windows else {}, counters=dict(counts)),
        values=values(windows),
        overhead=overhead(found.mark_ns, found.thread_clock_ns, times),
        looks=describe_looks(found.looks, stages) if found.looks else None,
        stages=tuple(describe_stages(stages)),
        resources=replace(usage, rss_mean_bytes=None, pauses=None if found.profiled else found.pauses),
        notices=tuple(notices(found)),
        findings=(
            *([Finding(probe=EXPECT, facts=expected)] if expected else []),
            *([found.torch] if found.torch else []),
        ),
        **phases(times, found.threads, found.windows.rounds),
    )
    return judge(with_metrics(made))


def described(options: "LoopOptions", how: How) -> Described:
    params = {name: plain(value) for name, value in options.params.items()}
    variant = {"num_envs": 1, **{name: plain(value) for name, value in options.variant.items()}}
    return Described(
        name=options.name,
        world=None,
        impl=IMPL,
        device="cpu" if how == "sync" else "cuda",
        params=params,
        workload_hash=hash_of(options.name, params),
        variant=variant,
    )


def plain(value: object) -> object:
    """A value as a record can keep it."""
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def values(kept: Sequence[WindowCounts]) -> dict[str, tuple[float, ...]]:
    """Return one value per window, of everything that was counted at all."""
    known: dict[str, tuple[float, ...]] = {"wall_ns": tuple(float(each.wall_ns) for each in kept)}
    for name in (STEPS, UPDATES, SAMPLES):
        if any(each.counts.get(name) for each in kept):
            known[f"{name}_per_s"] = tuple(each.per_s(name) for each in kept)
            known[name] = tuple(float(each.counts.get(name, 0)) for each in kept)
    if "env_steps_per_s" in known:
        known["agent_steps_per_s"] = known["env_steps_per_s"]
    return known


def phases(
    times: TimeTree | None, threads: tuple[TimeTree, ...], windows: Sequence[TimeTree]
) -> dict[str, Any]:
    """Return the rows of all windows, and beside them those of other threads."""
    if times is None:
        return {}
    beside = describe_times(replace(times, children=threads), root=THREADS)[1:]
    rows = describe_times(replace(times, calls=1), windows)
    return {"phases": rows + beside, "unaccounted_ns": times.unaccounted_ns}


def overhead(mark_ns: float, thread_clock_ns: float, times: TimeTree | None) -> Overhead | None:
    """What spans and marks cost by their number: a span has two boundaries, where it may read two clocks."""
    if times is None or not times.total_ns:
        return None
    marks = 2 * sum(row.calls for row in times.rows)
    reads = 2 * sum(row.calls for row in times.rows if row.cpu_ns is not None)
    cost_ns = marks * mark_ns + reads * thread_clock_ns
    return Overhead(ratio=1 + cost_ns / times.total_ns, ci95=None, mark_ns=mark_ns)


def notices(found: RunResult) -> Iterator[Notice]:
    """Yield what only the run knows."""
    if found.broken is not None:
        yield notice(Code.RAISED, error=found.broken)
    if found.profiled:
        windows = len(found.windows.kept)
        is_all = not found.looks
        yield profiled_notice(found.profiled, found.profiled + (0 if is_all else windows))
    if found.no_trace:
        yield notice(Code.NO_PROBE, probe="torch", why=found.no_trace, remedy=LONGER)
    if found.left_open:
        yield notice(Code.LEFT_OPEN, names=", ".join(found.left_open))
    if found.how == "async" or found.hosted:
        yield notice(Code.HOST_TIMER, whose="the GPU's", remedy=GPU_LATE)
    bridge = sys.modules.get("jax._src.xla_bridge")  # JAX computes behind its caller, on any device
    if found.options.wait is None and getattr(bridge, "backends_are_initialized", bool)():
        yield notice(Code.HOST_TIMER, whose="JAX's", remedy=JAX)


def trace_of(timeline: Timeline, record: Record) -> Trace:
    """Return the first spans and marks of the run, by the host's clock."""
    events, _ = read_spans(timeline)
    rows = zip(events.place.tolist(), events.begin.tolist(), events.end.tolist(), strict=True)
    slices = [
        Slice(events.paths[place].rpartition("/")[2], begin, end, int(events.threads[place]), SPAN, {})
        for place, begin, end in rows
    ]
    nested = tuple(nest(slices))
    about = {
        "command": KIND,
        "target": record.target.name,
        "run_id": record.run_id,
        "sampling": f"the first {len(slices)} spans and marks; {events.missed} more were not kept",
        "clock": "the host's, also where a GPU worked behind it",
    }
    return Trace(tracks=names_of({each.track for each in nested}), slices=nested, slow={}, about=about)


def cuda_runs() -> bool:
    """Whether torch works on a GPU in this process; it is never imported to find out."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_initialized())
