"""From a loop's windows to its record and its trace."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.core.clock import utc_now
from hotloop.core.machine import code, machine, project
from hotloop.core.notices import Code, Notice, notice, profiled_notice
from hotloop.core.record import Method, Record, Resources, new_record
from hotloop.core.record.metadata import CodeInfo as RanCode
from hotloop.core.record.metadata import Described, Machine, PathRan, Work
from hotloop.core.record.profile import Finding, Overhead, Pauses, describe_times
from hotloop.core.settings import hash_of
from hotloop.core.time_tree import How, Slice, TimeTree, Trace
from hotloop.judge.expect import EXPECT
from hotloop.judge.judge import judge
from hotloop.lab.loop.account import jax_runs
from hotloop.lab.loop.windows import (
    SAMPLES,
    STEPS,
    UPDATES,
    LoopLook,
    Windows,
    describe_looks,
    describe_stages,
    stages_of,
)
from hotloop.lab.profile.calls import Timeline, read_spans
from hotloop.lab.profile.trace import SPAN, names_of, nest
from hotloop.probes import resources
from hotloop.stats.summary import with_metrics

if TYPE_CHECKING:
    from hotloop.lab.loop.run import Asked

KIND = "run"

IMPL = "foreign"

CLOCK = "perf_counter_ns; regions "  # What a method says of its clock, before how the regions were timed

WAITED = "perf_counter_ns, after waiting at every boundary; regions "

# What the paths of spans of other threads begin with: they are beside the wall and no part of it.
THREADS = "threads"

JAX = "give hotloop.run a wait= that blocks on what the loop computes, such as jax.block_until_ready"

LONGER = "run longer, or give hotloop.run a profiler= that begins sooner"

GPU_LATE = "begin the run when the model is on the GPU, or give hotloop.run timing='events'"


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
    """All that is known of a run that has ended."""

    asked: "Asked"
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
    """The judged record: a round is a window."""
    origin, asked, times = found.origin, found.asked, found.windows.times
    windows, target = found.windows.kept, described(asked, found.how)
    stages = stages_of(found.looks)
    made = new_record(
        KIND,
        now=origin.date,
        code=origin.code,
        target=target,
        name=asked.name,
        label=asked.name,
        partial=found.broken is not None,
        machine=origin.machine,
        method=method(found),
        work=work(found.counts),
        path=PathRan(requested=IMPL, ran={IMPL: 1.0} if windows else {}, counters=dict(found.counts)),
        values=values(found.windows),
        overhead=overhead(found.mark_ns, found.thread_clock_ns, times),
        looks=describe_looks(found.looks, stages) if found.looks else None,
        stages=tuple(describe_stages(stages)),
        resources=used(found.samples, None if found.profiled else found.pauses),
        notices=tuple(notices(found)),
        findings=(*expectation(asked), *([found.torch] if found.torch else [])),
        **phases(times, found.threads, found.windows.rounds),
    )
    return judge(with_metrics(made))


def work(counts: Mapping[str, int]) -> Work:
    """What was counted; a step is one agent's, as far as anybody knows."""
    return Work(env_steps=counts[STEPS], agent_steps=counts[STEPS], updates=counts[UPDATES])


def described(asked: "Asked", how: How) -> Described:
    params = {name: plain(value) for name, value in asked.params.items()}
    variant = {"num_envs": 1, **{name: plain(value) for name, value in asked.variant.items()}}
    return Described(
        name=asked.name,
        world=None,
        impl=IMPL,
        device="cpu" if how == "sync" else "cuda",
        params=params,
        workload_hash=hash_of(asked.name, params),
        variant=variant,
    )


def plain(value: object) -> object:
    """A value as a record can keep it."""
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def method(found: RunResult) -> Method:
    windows = found.windows.kept
    steps = found.counts[STEPS] // max(len(windows), 1)
    return Method(
        rounds=len(windows),
        iterations=steps,
        warmup=0,
        threads=1,
        order="single",
        clock=f"{WAITED if found.asked.wait else CLOCK}{found.how}",
        policy="own loop",
        garbage="life",
    )


def values(windows: Windows) -> dict[str, tuple[float, ...]]:
    """One value a window, of everything that was counted at all."""
    kept = windows.kept
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


def used(samples: Sequence[resources.ResourceSample], pauses: Pauses | None) -> Resources:
    return replace(resources.used(resources.describe(samples, 0)), rss_mean_bytes=None, pauses=pauses)


def expectation(asked: "Asked") -> Iterator[Finding]:
    """Return what the owner of the loop expects, where anything."""
    if asked.expect:
        yield Finding(probe=EXPECT, facts={phase: list(ends) for phase, ends in asked.expect.items()})


def notices(found: RunResult) -> Iterator[Notice]:
    """What only the run knows."""
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
    if found.asked.wait is None and jax_runs():
        yield notice(Code.HOST_TIMER, whose="JAX's", remedy=JAX)


def trace_of(timeline: Timeline, record: Record) -> Trace:
    """The first spans and marks of the run, by the host's clock."""
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
