"""What a run uses beside time: instructions of an env-step, and the memory, files and threads it holds."""

import ctypes
import gc
import json
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hotloop.core.progress import Progress, silent
from hotloop.core.record.metadata import Instructions
from hotloop.core.settings import Target
from hotloop.lab.measure.policy import RANDOM
from hotloop.probes.instructions import Counter

# Instructions between the two runs: what differs from one process to the next is a ten-thousandth of it,
# unless it asks for where things lie, as NumPy's tables by address do: that may be a hundredth.
ENOUGH = 100_000_000

APART = 40  # Characters that Python keeps before all else, by which things lie elsewhere in the next layout
SHORT = 1  # Calls of the shorter run; what a first step does once is in both

# Of the work, for the progress: starting, two runs to see how much a call takes, and the two that count.
PARTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Where the counted program runs; its own folder and environment are this process's."""

    folder: Path | None = None
    environment: Mapping[str, str] | None = None


HERE = Where()


def count(
    target: Target,
    *,
    policy: str = RANDOM,
    progress: Progress = silent,
    env_steps: int | None = None,
    where: Where = HERE,
) -> Instructions:
    """Count the instructions of an env-step of a target, with every probe off and one thread.

    `env_steps` are those of the longer run, as `Instructions.runs` has them: give those of one side to the
    other, so that both are counted over the same stretch. By default they are as many as are needed.
    """
    progress(0, PARTS)
    with open_counter(target, policy, where=where) as counter:
        return count_by(counter, progress=progress, env_steps=env_steps)


def open_counter(target: Target, policy: str = RANDOM, *, layout: int = 0, where: Where = HERE) -> Counter:
    """The program that counts a target, as often as it is asked; its start is most of what a count takes.

    In another layout the same program comes to lie elsewhere in memory.
    """
    asked = {"target": on_one_thread(target).plain(), "policy": policy}
    elsewhere = ["-X", f"layout={'-' * layout * APART}"] if layout else []
    words = [*elsewhere, "-m", "hotloop.lab.workers.run", "count", json.dumps(asked)]
    return Counter(words, where.environment, where.folder)


def count_by(counter: Counter, *, progress: Progress = silent, env_steps: int | None = None) -> Instructions:
    """Count by a program that is open already."""
    progress(1, PARTS)
    num_envs: int = counter.facts["num_envs"]
    longer = long_enough(counter, progress) if env_steps is None else -(-env_steps // num_envs)
    few, many = (
        (calls * num_envs, run(counter, calls, longer, progress, part))
        for part, calls in ((4, SHORT), (5, max(longer, SHORT + 1)))
    )
    return subtract((few, many), isa=" ".join(counter.facts["isa"]))


def on_one_thread(target: Target) -> Target:
    """Threads wait for each other by spinning, which is no work and never the same twice."""
    return target if target.is_foreign else target.with_keys({"threads": 1})


def long_enough(counter: Counter, progress: Progress) -> int:
    """Calls of the longer run: a power of two more than the shorter one has, the same for the same code."""
    one, two = (run(counter, calls, 2, progress, part) for part, calls in ((2, 1), (3, 2)))
    more = 1
    while more * (two - one) < ENOUGH:
        more *= 2
    return SHORT + more


def run(counter: Counter, calls: int, drawn: int, progress: Progress, part: int) -> int:
    """The instructions of one run; both of a pair draw the actions of the longer one."""
    counted = counter.count({"drawn": drawn, "played": calls})
    progress(part, PARTS)
    return counted


def subtract(runs: tuple[tuple[int, int], tuple[int, int]], isa: str) -> Instructions:
    """What the longer run has beyond the shorter, for each env-step it has beyond it."""
    (few, begun), (many, whole) = runs
    return Instructions(per_env_step=(whole - begun) / (many - few), runs=runs, isa=isa)


PAGE = os.sysconf("SC_PAGE_SIZE")

STATM = Path("/proc/self/statm")

FILES = Path("/proc/self/fd")

TASKS = Path("/proc/self/task")


class Mallinfo(ctypes.Structure):
    """What glibc's mallinfo2 gives."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


def release_memory() -> None:
    """Collect garbage, and give free memory back to the system, where the C library can."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def resident_bytes() -> int:
    """The memory of this process that is in RAM."""
    if STATM.exists():
        return int(STATM.read_text().split()[1]) * PAGE
    import psutil

    return int(psutil.Process().memory_info().rss)


def heap_reader() -> Callable[[], int] | None:
    """A function that says what malloc has handed out, Python's own arenas among it; None without glibc."""
    found = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if found is None:
        return None
    found.restype = Mallinfo

    def read() -> int:
        told = found()
        return int(told.uordblks) + int(told.hblkhd)

    return read


def open_files() -> int:
    """Files, sockets and pipes that are open; but for the one that counts them."""
    if FILES.exists():
        return sum(1 for _ in FILES.iterdir()) - 1
    import psutil

    return int(psutil.Process().num_fds())


def running_threads() -> int:
    """Threads of this process, of Python and of native code."""
    return sum(1 for _ in TASKS.iterdir()) if TASKS.exists() else threading.active_count()
