"""Resources: CPU, memory, I/O, threads and GPU of the process and its children, seen from a side thread."""

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import fmean
from types import TracebackType
from typing import Any, Self

from hotloop.core.clock import now_ns
from hotloop.core.record import Resources
from hotloop.core.record.profile import Finding, Table
from hotloop.core.registry import Probe, Scene

EVERY_S = 0.05  # Between two samples
MOST_SAMPLES = 4_096  # From here on every other sample is dropped, and samples are taken half as often
SHORTEST_NS = 1_000_000_000  # Of a pass; a play that is over sooner is played again
MOST_POINTS = 120  # Of memory over time that a record keeps

LIBRARY = "libnvidia-ml.so.1"

Read = Callable[[], tuple[tuple[float, int], ...]]  # Busy share and bytes in use of each GPU


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSample:
    """What was in use at one moment; times and I/O are counted from the process's beginning."""

    at_ns: int
    cpu_ns: int
    rss_bytes: int
    read_bytes: int
    written_bytes: int
    threads: int
    processes: int
    # Share of each core that was busy since the last sample, with whatever ran on it.
    cores: tuple[float, ...]
    gpus: tuple[tuple[float, int], ...]  # Busy share and memory in use of each GPU
    # For how long its threads could have run and had no core; None where the kernel does not say.
    ready_ns: int | None = None


class Sampler:
    """Takes samples from a thread of its own for as long as it is entered."""

    def __init__(self, read: Callable[[], ResourceSample], every_s: float = EVERY_S) -> None:
        self.samples: list[ResourceSample] = []
        self._read = read
        self._every_s = every_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hotloop-resources", daemon=True)

    def __enter__(self) -> Self:
        self.samples.append(self._read())
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self.samples.append(self._read())

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            self.samples.append(self._read())
            if len(self.samples) >= MOST_SAMPLES:
                del self.samples[1::2]
                self._every_s *= 2


def reader(pid: int | None = None) -> Callable[[], ResourceSample]:
    """A function that takes one sample of a process, by default this one, its children and the machine."""
    import psutil

    here = psutil.Process(pid)
    psutil.cpu_percent(percpu=True)  # the first answer is about nothing
    gpus, ready = gpu_reader(), RunQueue()

    def read() -> ResourceSample:
        family = [here, *here.children(recursive=True)]
        told = [each for each in map(figures, family) if each]
        cpu, rss, read_bytes, written, threads = (sum(column) for column in zip(*told, strict=True))
        return ResourceSample(
            at_ns=now_ns(),
            cpu_ns=round(cpu * 1e9),
            rss_bytes=int(rss),
            read_bytes=int(read_bytes),
            written_bytes=int(written),
            threads=int(threads),
            processes=len(told),
            cores=tuple(percent / 100 for percent in psutil.cpu_percent(percpu=True)),
            gpus=gpus(),
            ready_ns=ready.read(*(each.pid for each in family)),
        )

    return read


class RunQueue:
    """For how long threads waited for a core, those that have ended since the last look included."""

    def __init__(self) -> None:
        self._seen: dict[Path, int] = {}

    def read(self, *pids: int) -> int | None:
        """Of the threads of processes, by default of this one; None where the kernel does not say."""
        folders = [Path("/proc", str(pid), "task") for pid in pids or (os.getpid(),)]
        tasks: list[Path] = []
        for folder in folders:
            with suppress(OSError):  # a process that has just ended
                tasks += folder.iterdir()
        for task in tasks:
            with suppress(OSError, IndexError):  # a thread that has just ended
                self._seen[task] = int((task / "schedstat").read_text().split()[1])
        return sum(self._seen.values()) if self._seen else None


def ready_share(first: int | None, last: int | None, wall_ns: int) -> float | None:
    """The time without a core over wall time; None where it is not known."""
    return None if first is None or last is None else max(0, last - first) / max(wall_ns, 1)


def figures(process: Any) -> tuple[float, float, float, float, float] | None:
    """CPU seconds, resident bytes, bytes read and written, threads; None where the process has gone."""
    import psutil

    try:
        with process.oneshot():
            times, rss, threads = process.cpu_times(), process.memory_info().rss, process.num_threads()
            io = process.io_counters() if hasattr(process, "io_counters") else None
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None
    moved = (io.read_bytes, io.write_bytes) if io else (0, 0)
    return times.user + times.system, rss, *moved, threads


def look(scene: Scene) -> Finding:
    """Play for at least a second while a side thread takes samples."""
    plays = 0
    with Sampler(reader()) as sampler:
        while not plays or now_ns() - sampler.samples[0].at_ns < SHORTEST_NS:
            scene.draw(scene.calls)()
            plays += 1
    return describe(sampler.samples, plays * scene.calls * scene.env_steps)


def describe(samples: Sequence[ResourceSample], env_steps: int) -> Finding:
    """What the samples come to; the facts that a record's resources name among them."""
    first, last = samples[0], samples[-1]
    wall_ns = last.at_ns - first.at_ns
    facts: dict[str, Any] = {
        "rss_peak_bytes": max(sample.rss_bytes for sample in samples),
        "rss_mean_bytes": round(fmean(sample.rss_bytes for sample in samples)),
        "rss_over_time": over_time(samples),
        "rss_slope": slope([(sample.at_ns / 1e9, sample.rss_bytes) for sample in samples]),
        "cpu_share": (last.cpu_ns - first.cpu_ns) / wall_ns,
        "ready_share": ready_share(first.ready_ns, last.ready_ns, wall_ns),
        "gpu": gpu_facts(samples),
        "read_bytes": last.read_bytes - first.read_bytes,
        "written_bytes": last.written_bytes - first.written_bytes,
        "threads": max(sample.threads for sample in samples),
        "processes": max(sample.processes for sample in samples),
        "samples": len(samples),
        "env_steps": env_steps,
        "wall_ns": wall_ns,
    }
    cores = zip(*(sample.cores for sample in samples[1:]), strict=True)
    rows = tuple((number, fmean(busy), max(busy)) for number, busy in enumerate(cores))
    title = "Cores, with whatever else ran on them"
    table = Table(title=title, columns=("core", "mean_share", "most_share"), rows=rows)
    return Finding(probe="resources", facts=facts, tables=(table,))


def used(found: Finding) -> Resources:
    """The facts that a record has fields of its own for."""
    named = {each.name: found.facts[each.name] for each in fields(Resources) if each.name in found.facts}
    points = tuple((at_ns, rss_bytes) for at_ns, rss_bytes in named["rss_over_time"])
    return Resources(**named | {"rss_over_time": points})


def over_time(samples: Sequence[ResourceSample]) -> list[list[int]]:
    """Memory at moments that are about as far apart, few enough to keep."""
    every = -(-len(samples) // MOST_POINTS)
    return [[sample.at_ns - samples[0].at_ns, sample.rss_bytes] for sample in samples[::every]]


def gpu_facts(samples: Sequence[ResourceSample]) -> dict[str, Any] | None:
    """Mean busy share and most memory of each GPU; None where there is none."""
    if not samples[0].gpus:
        return None
    each = zip(*(sample.gpus for sample in samples), strict=True)
    devices = [
        {"busy_share": fmean(b for b, _ in told), "peak_bytes": max(m for _, m in told)} for told in each
    ]
    return {"devices": devices}


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """Rise a second of the line through the points, by least squares; None where they have no width."""
    mean_x, mean_y = (fmean(values) for values in zip(*points, strict=True))
    width = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / width if width else None


probe = Probe(
    name="resources",
    purpose="CPU by core, memory, I/O, threads and GPU, sampled from a side thread",
    why_not=lambda: None,
    look=look,
)


class GpuUtilization(ctypes.Structure):
    """Percent of the time since the driver's last look."""

    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class GpuMemory(ctypes.Structure):
    """Bytes."""

    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


def gpu_reader(library: Any = None) -> Read:
    """A function that reads all GPUs; it reads none where there is no driver, or no GPU."""
    if library is None:
        try:
            library = ctypes.CDLL(LIBRARY)
        except OSError:
            return tuple
    count = ctypes.c_uint()
    if library.nvmlInit_v2() or library.nvmlDeviceGetCount_v2(ctypes.byref(count)):
        return tuple
    handles = [ctypes.c_void_p() for _ in range(count.value)]
    for index, handle in enumerate(handles):
        if library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle)):
            return tuple
    return lambda: tuple(gpu_figures(library, handle) for handle in handles)


def gpu_figures(library: Any, handle: ctypes.c_void_p) -> tuple[float, int]:
    """One GPU; what it does not tell is zero."""
    busy, memory = GpuUtilization(), GpuMemory()
    library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(busy))
    library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
    return busy.gpu / 100, int(memory.used)
