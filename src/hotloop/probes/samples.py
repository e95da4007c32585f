"""Samples of the stack: the hot functions below a step, or of a process that runs already."""

import json
import linecache
import os
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hotloop.core.clock import now_ns
from hotloop.core.errors import Code, Notice, notice
from hotloop.core.record import stacks
from hotloop.core.record.profile import Finding, Table
from hotloop.core.record.stacks import Stack
from hotloop.core.registry import Obstacle, Probe, ProbeError, Scene
from hotloop.core.sampler import StackSampler
from hotloop.judge.case import find_lever, own_stacks
from hotloop.probes import pyspy
from hotloop.probes.pyspy import OURS, OUTSIDE_RATE, OutsideSampler, name_frames
from hotloop.stats.summary import share_interval

SHORTEST_NS = 1_000_000_000  # Of a pass; a play that is over sooner is played again
ENOUGH = 20  # Samples of a play; the first is taken a millisecond after it began

MOST_ROWS = 12

SMALLEST_SHARE = 0.005  # Of the samples: a function with less in it, callees and all, says nothing

# Of the time: a caller of the lever with less beside it is a way in and nothing to change.
SMALLEST_CALLER = 0.02

FILE = "samples.speedscope.json"

# The CPU share is of the total: what has one far below 100% waits.
COLUMNS = ("function", "own_share", "own_interval", "total_share", "total_interval", "cpu_share")

OUTSIDE = "outside.speedscope.json"

OUTSIDE_NS = 6_000_000_000  # Of the pass that py-spy looks at
FEWEST = 100  # Samples from outside, below which those from inside say more

# Facts that say why samples were taken inside the process.
INSIDE, REMEDY = "sampled_inside", "sampled_inside_remedy"

# The fact of the line of the first of the user's functions that takes most of its time, with its code.
LINE = "hottest_line"

TITLE = "Hot functions, by samples"

YOURS = "Your functions, by samples"  # The title of the functions of the user's own code, the lever first


@dataclass(slots=True)
class SampleCounts:
    """Samples, added up."""

    ns: Counter[Stack] = field(default_factory=Counter)
    cpu_ns: Counter[Stack] = field(default_factory=Counter)
    samples: int = 0


def look(scene: Scene) -> Finding:
    """Play while py-spy samples from outside, and for at least a second while a timer does inside.

    The shares are those from outside if it may look; CPU time is known inside only.
    """
    inside = sampled(scene)
    worked = worked_shares(theirs(inside.ns, scene.marker), theirs(inside.cpu_ns, scene.marker))
    try:
        seen, why = from_outside(scene), None
    except ProbeError as error:
        seen, why = inside, error.obstacle
    below = theirs(seen.ns, scene.marker)
    stacks.write(scene.folder / FILE, "samples", {each: ns / 1e9 for each, ns in below.items()})
    found = describe(seen, scene.marker, worked)
    return found if why is None else told_inside(found, why)


def from_outside(scene: Scene) -> SampleCounts:
    """Play while py-spy samples this process; ProbeError if it may not, or meets nothing of the play."""
    with OutsideSampler(scene.folder / OUTSIDE, os.getpid()) as sampler:
        begin = now_ns()
        while now_ns() - begin < OUTSIDE_NS:
            scene.draw(scene.calls)()
    (scene.folder / OUTSIDE).unlink(missing_ok=True)
    ns: Counter[Stack] = Counter()
    for stack, count in sampler.counts.items():
        if any(name == scene.marker for name, _, _ in stack):
            ns[stack] += round(count * 1e9 / OUTSIDE_RATE)
    samples = round(sum(ns.values()) * OUTSIDE_RATE / 1e9)
    if samples < FEWEST:
        raise ProbeError(f"py-spy met the play {samples} times only", "give --steps a larger number")
    return SampleCounts(ns=ns, samples=samples)


def told_inside(found: Finding, why: Obstacle) -> Finding:
    """Return a finding that says why its samples are from inside the process."""
    return replace(found, facts={**found.facts, INSIDE: why.why, REMEDY: why.remedy})


def notices_of(found: Finding) -> tuple[Notice, ...]:
    """Return the warning of samples that were taken inside the process."""
    if INSIDE not in found.facts:
        return ()
    return (notice(Code.SAMPLED_INSIDE, why=found.facts[INSIDE], remedy=found.facts[REMEDY]),)


def worked_shares(ns: Mapping[Stack, int], cpu_ns: Mapping[Stack, int]) -> dict[stacks.Frame, float | None]:
    """Return the share of each function's time in which it had a core."""
    shares: dict[stacks.Frame, float | None] = {}
    for each in stacks.functions(ns, cpu_ns):
        cpu = each.total_cpu
        share = None if cpu is None or not each.total else min(1.0, cpu / each.total)
        shares[stacks.identity(each.frame)] = share
    return shares


def sampled(scene: Scene) -> SampleCounts:
    """Play until there are samples enough, longer where a play is over before the timer has gone off."""
    seen, begin, calls = SampleCounts(), now_ns(), scene.calls
    while not seen.samples or now_ns() - begin < SHORTEST_NS:
        play = scene.draw(calls)
        with StackSampler() as sampler:
            play()
        calls *= 2 if sampler.samples < ENOUGH else 1
        seen.ns.update(sampler.ns)
        seen.cpu_ns.update(sampler.cpu_ns)
        seen.samples += sampler.samples
    return seen


def describe(seen: SampleCounts, marker: str, worked: Mapping[stacks.Frame, float | None]) -> Finding:
    """Return the user's functions by their total and all by their own time, without Hotloop's."""
    whole, below = sum(seen.ns.values()), theirs(seen.ns, marker)
    facts = {"samples": seen.samples, "below_share": sum(below.values()) / whole, **hottest_line(below)}
    tables = tables_of(below, whole, worked, seen.samples)
    return Finding(probe="samples", facts=facts, tables=tables, files=(FILE,))


def tables_of(
    found: Mapping[Stack, int], whole: int, worked: Mapping[stacks.Frame, float | None], samples: int
) -> tuple[Table, ...]:
    """Return the user's functions, the lever first, and then the functions with most time of their own."""
    hot = [each for each in stacks.functions(found) if each.total >= SMALLEST_SHARE * whole]
    named = {stacks.identity(each.frame): each for each in hot}
    yours = own_stacks(found, OURS)
    mine = {stacks.identity(frame) for stack in yours for frame in stack}
    lever = find_lever(yours)
    kept = {each for each in mine & {*named} if not only_calls(each, lever, yours, SMALLEST_CALLER * whole)}
    order = sorted(kept, key=lambda each: (each != lever, -named[each].total))
    rows = [
        tuple(row_of(each, whole, samples, worked.get(stacks.identity(each.frame))) for each in some)
        for some in (map(named.__getitem__, order), hot)
    ]
    return tuple(
        Table(title=title, columns=COLUMNS, rows=found[:MOST_ROWS])
        for title, found in zip((YOURS, TITLE), rows, strict=True)
        if found
    )


def hottest_line(found: Mapping[Stack, int]) -> dict[str, object]:
    """Return the facts of the line where the lever spends most of its time; none without a lever."""
    lever = find_lever(own_stacks(found, OURS))
    ns: Counter[tuple[str, int]] = Counter()
    for stack, each in found.items():
        at = next((frame for frame in reversed(stack) if stacks.identity(frame) == lever), None)
        if at is not None:
            ns[at[1:]] += each
    if not ns:
        return {}
    (file, line), most = ns.most_common(1)[0]
    code = linecache.getline(file, line).strip()
    share = most / ns.total()
    return {LINE: f"{Path(file).name}:{line}: {code}", f"{LINE}_share": share} if code else {}


def only_calls(
    each: stacks.Frame, lever: stacks.Frame | None, yours: Mapping[Stack, float], least: float
) -> bool:
    """Return whether a function does nothing of its own on the way to the lever, libraries counted."""
    own, is_above = 0.0, False
    for stack, weight in yours.items():
        names = [stacks.identity(frame) for frame in stack]
        own += weight if names[-1] == each else 0.0
        is_above |= lever in names and each in names[: names.index(lever)]
    return each != lever and is_above and own < least


def row_of(each: stacks.FunctionTime, whole: int, samples: int, worked: float | None) -> tuple[object, ...]:
    """Return the row of one function."""
    own, total = each.own / whole, each.total / whole
    return each.place, own, share_interval(own, samples), total, share_interval(total, samples), worked


def theirs(found: Mapping[Stack, int], marker: str) -> Counter[Stack]:
    """The same below the function that plays, without what is Hotloop's own."""
    below: Counter[Stack] = Counter()
    for stack, ns in found.items():
        below[without_ours(stack, marker)] += ns
    below.pop((), None)
    return below


def without_ours(stack: Stack, marker: str) -> Stack:
    """From the first function below the player that is not Hotloop's on; empty where there is none."""
    begin = next((depth for depth, (name, _, _) in enumerate(stack) if name == marker), 0)
    inner = (depth for depth in range(begin, len(stack)) if not stack[depth][1].startswith(OURS))
    return stack[next(inner, len(stack)) :]


# Of the time that was looked at; a thread that waits for a core is idle.
THREAD_COLUMNS = ("thread", "cpu_share", "idle_share")

THREAD = re.compile(r'Thread (\d+)(?: "(.*)")?$')  # What py-spy calls the samples of a thread
LEAST_NATIVE = 0.01  # Of the time, that a thread without Python works which is listed


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadTime:
    """A thread of a process while it was looked at."""

    name: str
    share: float  # Of the time, that it had a core for
    seconds: Mapping[Stack, float]  # In which py-spy met it at work, by stack


def attach(pid: int, folder: Path, seconds: int) -> Finding:
    """Return what a process works at and how much each thread waits; ProbeError if py-spy may not look."""
    names, path = thread_names(pid), folder / OUTSIDE
    with OutsideSampler(path, pid, idle=False) as sampler:
        begin, before = now_ns(), cpu_times(pid)
        sampler.wait(seconds)
        took_s, after = (now_ns() - begin) / 1e9, cpu_times(pid)
    found = read_threads(path)
    path.unlink()
    names |= {thread: name for thread, (name, _) in found.items()}
    if not after:  # it has ended
        after = {each: before.get(each, 0.0) + sum(seconds.values()) for each, (_, seconds) in found.items()}
    threads = [
        ThreadTime(
            name=f"{names.get(thread, 'native thread')} {thread}",
            share=min(1.0, (cpu_s - before.get(thread, 0.0)) / took_s),
            seconds=found[thread][1] if thread in found else {},
        )
        for thread, cpu_s in after.items()
        if thread in names or cpu_s - before.get(thread, 0.0) >= LEAST_NATIVE * took_s
    ]
    return describe_threads(threads, took_s, folder)


def thread_names(pid: int) -> dict[int, str]:
    """Return the names of the Python threads of a process by the kernel's number of each."""
    words = [str(pyspy.find()), "dump", "--json", "--pid", str(pid)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise pyspy.failure(done.stderr)
    return {each["os_thread_id"]: each["thread_name"] or "thread" for each in json.loads(done.stdout)}


def cpu_times(pid: int) -> dict[int, float]:
    """Return the CPU seconds of each thread of a process; none if it has ended."""
    import psutil

    try:
        return {each.id: each.user_time + each.system_time for each in psutil.Process(pid).threads()}
    except psutil.Error:
        return {}


def read_threads(path: Path) -> dict[int, tuple[str, dict[Stack, float]]]:
    """Return the name of each thread that py-spy met at work, and the seconds of its stacks."""
    found = {}
    for name, seconds in stacks.read_profiles(path).items():
        thread = THREAD.search(name)
        if thread:
            named: defaultdict[Stack, float] = defaultdict(float)
            for stack, each in seconds.items():
                named[name_frames(stack)] += each
            found[int(thread[1])] = (thread[2] or "thread", dict(named))
    return found


def describe_threads(threads: Sequence[ThreadTime], took_s: float, folder: Path) -> Finding:
    """Return the threads and the functions that they work at; a thread's samples share out its CPU time.

    py-spy sometimes takes a thread for busy that only waits: it has no CPU time to share out.
    """
    ns: defaultdict[Stack, int] = defaultdict(int)
    met = 0.0
    for each in threads:
        sampled_s = sum(each.seconds.values())
        part = min(1.0, each.share * took_s / sampled_s) if sampled_s else 0.0
        met += part * sampled_s
        for stack, seconds in each.seconds.items() if part else ():
            ns[stack] += round(part * seconds * 1e9)
    count = round(met * OUTSIDE_RATE)
    busiest = sorted(threads, key=lambda each: -each.share)
    rows = tuple((each.name, each.share, 1 - each.share) for each in busiest)
    table = Table(title="Threads, by CPU time", columns=THREAD_COLUMNS, rows=rows)
    stacks.write(folder / FILE, "samples", {stack: each / 1e9 for stack, each in ns.items()})
    return Finding(
        probe="samples",
        facts={"samples": count, "rate_per_s": OUTSIDE_RATE, **hottest_line(ns)},
        tables=(table, *(tables_of(ns, sum(ns.values()), {}, count) if count else ())),
        files=(FILE,),
    )


probe = Probe(
    name="samples",
    purpose="the hot functions below a step of somebody else's, always, unless cprofile or pyspy looks there",
    why_not=lambda: None,
    look=look,
)
