"""A process that runs already: how busy each of its threads is, and its functions by samples from outside."""

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hotloop.core.clock import now_ns
from hotloop.core.record import stacks
from hotloop.core.record.profile import Finding, Table
from hotloop.core.record.stacks import Stack
from hotloop.probes import pyspy, samples
from hotloop.probes._outside import RATE, OutsideSampler, name_frames

# Of the time that was looked at; a thread that waits for a core is idle.
COLUMNS = ("thread", "cpu_share", "idle_share")

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
    names, path = thread_names(pid), folder / samples.OUTSIDE
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
    return describe(threads, took_s, folder)


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


def describe(threads: Sequence[ThreadTime], took_s: float, folder: Path) -> Finding:
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
    count = round(met * RATE)
    busiest = sorted(threads, key=lambda each: -each.share)
    rows = tuple((each.name, each.share, 1 - each.share) for each in busiest)
    table = Table(title="Threads, by CPU time", columns=COLUMNS, rows=rows)
    stacks.write(folder / samples.FILE, "samples", {stack: each / 1e9 for stack, each in ns.items()})
    return Finding(
        probe="samples",
        facts={"samples": count, "rate_per_s": RATE, **samples.hottest_line(ns)},
        tables=(table, *(samples.tables_of(ns, sum(ns.values()), {}, count) if count else ())),
        files=(samples.FILE,),
    )
