"""Memory, followed by memray: the peak, what allocates how often, and what grows with every step.

Growth is told apart from what a program merely holds by windows of two lengths. Each window ends with what
was allocated in it and is still held; the longer one's, less the shorter one's, is what the further steps
left behind, and what every window holds anyway cancels.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from hotloop.core.record.profile import Finding, Table
from hotloop.core.record.stacks import place
from hotloop.core.registry import Probe, Scene, package_missing
from hotloop.stats.summary import FEWEST, sign_interval

PAIRS = FEWEST  # Of windows: as many as an exact interval needs
LONGER = 3  # How many times the calls of the shorter window the longer one has
SHORTEST = 8  # Calls of the shorter window at least

# Of a pass, one is the shorter window: all windows together are a third of a pass, since memray is slow.
PARTS = 64

MOST_ROWS = 12

GROWING = 3  # Functions whose lines are listed as growing: those that grow most

FILE = "memory.bin"

GROWTH = ("site", "bytes_per_env_step", "bytes_low", "bytes_high")

COUNTS = ("site", "allocations_per_env_step", "bytes_per_env_step")

PEAK = ("site", "bytes", "share")

Sites = Mapping[str, float]  # Bytes, or allocations, by the line that allocated


def look(scene: Scene) -> Finding:
    """Play window after window, each under a tracker of its own."""
    import memray

    few, path = max(SHORTEST, scene.calls // PARTS), scene.folder / FILE
    counted, allocated = count(scene, few)
    held: dict[int, list[Sites]] = {few: [], LONGER * few: []}
    for _ in range(PAIRS):
        for calls, sites in held.items():
            tracked(path, scene.draw(calls))
            with memray.FileReader(path) as reader:
                sites.append(by_site(reader.get_leaked_allocation_records(merge_threads=True)))
    extra = (LONGER - 1) * few * scene.env_steps
    growth = grown(held[few], held[LONGER * few], extra)
    peak_bytes, peak = at_peak(path)
    low, middle, high = whole(held[few], held[LONGER * few], extra)
    steps = few * scene.env_steps
    often = sorted(counted, key=lambda where: -counted[where])[:MOST_ROWS]
    frequent = tuple((where, counted[where] / steps, allocated[where] / steps) for where in often)
    return Finding(
        probe="memory",
        facts={
            "play_peak_bytes": peak_bytes,
            "growth_bytes_per_env_step": middle,
            "growth_bytes_low": low,
            "growth_bytes_high": high,
            "allocations_per_env_step": sum(counted.values()) / steps,
            "allocated_bytes_per_env_step": sum(allocated.values()) / steps,
            "env_steps": (1 + PAIRS * (1 + LONGER)) * steps,
        },
        tables=(
            Table(title="What grows with every step, by site", columns=GROWTH, rows=growth),
            Table(title="Allocations by site", columns=COUNTS, rows=frequent),
            Table(title="Held at the peak, by site", columns=PEAK, rows=largest(peak, peak_bytes)),
        ),
        files=(FILE,),
    )


def tracked(path: Path, play: Callable[[], None], *, every: bool = False) -> None:
    """Play under a tracker, and collect garbage before it ends: what is left is held by the program."""
    import memray

    gc.collect()
    path.unlink(missing_ok=True)
    kinds = memray.FileFormat
    with memray.Tracker(
        destination=memray.FileDestination(path, overwrite=True, compress_on_exit=False),
        trace_python_allocators=True,
        file_format=kinds.ALL_ALLOCATIONS if every else kinds.AGGREGATED_ALLOCATIONS,
    ):
        play()
        gc.collect()


def count(scene: Scene, calls: int) -> tuple[Sites, Sites]:
    """How often each site allocated and how many bytes, whether or not they were freed."""
    import memray

    path = scene.folder / "every.bin"
    tracked(path, scene.draw(calls), every=True)
    counted: Counter[str] = Counter()
    allocated: Counter[str] = Counter()
    freeing = {memray.AllocatorType.FREE, memray.AllocatorType.MUNMAP, memray.AllocatorType.PYMALLOC_FREE}
    with memray.FileReader(path) as reader:
        for record in reader.get_allocation_records():
            if record.allocator not in freeing:
                where = site(record)
                counted[where] += record.n_allocations
                allocated[where] += record.size
    path.unlink()
    return counted, allocated


def at_peak(path: Path) -> tuple[int, Sites]:
    """The most that was held at once in the last window, and by which lines."""
    import memray

    with memray.FileReader(path) as reader:
        peak = by_site(reader.get_high_watermark_allocation_records(merge_threads=True))
        peak_bytes = int(reader.metadata.peak_memory)
    return peak_bytes, peak


def of_program(path: Path, most: int) -> Finding:
    """What a whole program held at its peak, and what it still held at its end, which is what grew."""
    import memray

    with memray.FileReader(path) as reader:
        left = by_site(reader.get_leaked_allocation_records(merge_threads=True))
    peak_bytes, peak = at_peak(path)
    growth = largest(left, sum(map(int, left.values())))[:most]
    return Finding(
        probe="memory",
        facts={"run_peak_bytes": peak_bytes, "left_bytes": sum(map(int, left.values()))},
        tables=(
            Table(title="Still held at the end, by site", columns=PEAK, rows=growth),
            Table(title="Held at the peak, by site", columns=PEAK, rows=largest(peak, peak_bytes)),
        ),
        files=(FILE,),
    )


def by_site(records: Iterable[Any]) -> Sites:
    held: Counter[str] = Counter()
    for record in records:
        held[site(record)] += record.size
    return held


def site(record: Any) -> str:
    """The line of Python that allocated; native code is counted where Python called it."""
    frames = record.stack_trace(max_stacks=1)
    return place(frames[0]) if frames else "native code outside Python"


def differences(shorter: Sequence[Sites], longer: Sequence[Sites], where: str, extra: int) -> list[float]:
    """Bytes an env-step that the further steps of each longer window left at a site."""
    pairs = zip(shorter, longer, strict=True)
    return [(long.get(where, 0) - short.get(where, 0)) / extra for short, long in pairs]


def grown(shorter: Sequence[Sites], longer: Sequence[Sites], extra: int) -> tuple[tuple[Any, ...], ...]:
    """Sites that grew in every pair of windows, of the three functions that grow most; the fastest first."""
    rows: list[tuple[Any, ...]] = []
    for where in {name for sites in longer for name in sites}:
        slopes = differences(shorter, longer, where, extra)
        interval = sign_interval(slopes)
        if interval and interval[0] > 0:
            rows.append((where, median(slopes), *interval))
    rows.sort(key=lambda row: -row[1])
    total: Counter[str] = Counter()
    for where, slope, *_ in rows:
        total[function_of(where)] += slope
    chosen = {name for name, _ in total.most_common(GROWING)}
    return tuple(row for row in rows if function_of(row[0]) in chosen)[:MOST_ROWS]


def function_of(where: str) -> str:
    """The function of a site, `step (envs/batch.py:120)`, whichever line of it that is."""
    return where.rpartition(":")[0] or where


def whole(shorter: Sequence[Sites], longer: Sequence[Sites], extra: int) -> tuple[float, float, float]:
    """Low, median and high of the growth of all sites together."""
    pairs = zip(shorter, longer, strict=True)
    slopes = [(sum(long.values()) - sum(short.values())) / extra for short, long in pairs]
    interval = sign_interval(slopes)
    assert interval is not None, "there are pairs enough"
    return interval[0], median(slopes), interval[1]


def largest(held: Sites, peak_bytes: int) -> tuple[tuple[Any, ...], ...]:
    large = sorted(held, key=lambda where: -held[where])[:MOST_ROWS]
    return tuple((where, held[where], held[where] / max(peak_bytes, 1)) for where in large)


probe = Probe(
    name="memory",
    purpose="peak, allocations and growth of memory by the line that allocates",
    why_not=lambda: package_missing("memray"),
    look=look,
)
