"""The account of where time went: a tree of regions that adds up to the wall.

`how` says what a region's time is:

- `sync`    the host's clock around work that is done when it is read: always so on a CPU; with a GPU after
            waiting for it at every boundary, which is exact, and slower than the run;
- `events`  events on the GPU's stream, read after the window;
- `async`   the host's clock around work that a GPU may still have to do: not to be trusted.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from hotloop.core.record.profile import WALL

How = Literal["sync", "events", "async"]

ENVIRONMENT = "rollout/environment"
"""The region whose children are the world's phases."""

REST = "unaccounted"

CALL = "call and waiting"
"""What the environment's step has beyond its phases: the call into it, and its threads' waiting."""

LARGEST = "◀ largest"

HOW = {
    "sync": "host clock, read when the work is done",
    "events": "events on the GPU's stream, read after the window",
    "async": "host clock around work that the GPU may still have to do: GPU work is charged to who waits",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """One row of the tree."""

    path: str
    """Names from the outermost inwards, joined by `/`."""
    calls: int
    total_ns: int
    cpu_ns: int | None = None
    """Of it that its thread was on a core: a row that waits has little. None where nobody looked."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def above(self) -> str:
        """The path of the row it is part of; empty where that is the wall."""
        return self.path.rpartition("/")[0]

    @property
    def depth(self) -> int:
        return self.path.count("/")


@dataclass(frozen=True, slots=True)
class Total:
    """What a path came to."""

    calls: int
    ns: int
    cpu_ns: int | None = None

    def __add__(self, other: "Total") -> "Total":
        cpu_ns = sum_known((self.cpu_ns, other.cpu_ns))
        return Total(self.calls + other.calls, self.ns + other.ns, cpu_ns)

    def __sub__(self, before: "Total") -> "Total":
        """What was added since; what is not known now, or was not then, is not known."""
        cpu_ns = None
        if self.cpu_ns is not None and before.cpu_ns is not None:
            cpu_ns = self.cpu_ns - before.cpu_ns
        return Total(self.calls - before.calls, self.ns - before.ns, cpu_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The account of one window, or of several added up."""

    how: How
    wall_ns: int
    regions: tuple[Region, ...]
    """Parents before their children."""
    cpu_ns: int | None = None
    """Of the wall."""

    def below(self, path: str) -> tuple[Region, ...]:
        """What a row consists of; the wall's path is empty."""
        return tuple(region for region in self.regions if region.above == path)

    def rest_ns(self, path: str) -> int:
        """What a row has beyond its parts; 0 where it has none."""
        parts = self.below(path)
        whole = self.wall_ns if not path else self[path].total_ns
        return whole - sum(part.total_ns for part in parts) if parts else 0

    def rest_cpu_ns(self, path: str) -> int | None:
        """Of that rest; None where the CPU time of the row or of any of its parts is not known."""
        whole = self.cpu_ns if not path else self[path].cpu_ns
        parts = [part.cpu_ns for part in self.below(path)]
        known = [ns for ns in parts if ns is not None]
        if whole is None or len(known) < len(parts):
            return None
        return max(0, min(whole - sum(known), self.rest_ns(path)))  # two clocks differ by some microseconds

    @property
    def unaccounted_ns(self) -> int:
        """What is in no part: the rests of the wall and of every row.

        The rest of the environment's step is the call into it and the waiting of its threads, and is known.
        """
        paths = ["", *(region.path for region in self.regions if region.path != ENVIRONMENT)]
        return sum(map(self.rest_ns, paths))

    @property
    def largest(self) -> Region | None:
        """The part that took most; the environment's step is one part, whatever its phases."""
        parts = [each for each in self.regions if each.path == ENVIRONMENT or not self.below(each.path)]
        outside = [each for each in parts if each.above != ENVIRONMENT]
        return max(outside, key=lambda each: each.total_ns, default=None)

    def share(self, path: str) -> float:
        """Of the wall; 0 for what there was none of."""
        found = next((region for region in self.regions if region.path == path), None)
        return found.total_ns / self.wall_ns if found and self.wall_ns else 0.0

    def __getitem__(self, path: str) -> Region:
        return next(region for region in self.regions if region.path == path)


def add(windows: Iterable[Times]) -> Times | None:
    """Several windows as one; None where there are none."""
    all_windows = list(windows)
    if not all_windows:
        return None
    totals: dict[str, Total] = {}
    for window in all_windows:
        for row in window.regions:
            one = Total(row.calls, row.total_ns, row.cpu_ns)
            totals[row.path] = totals[row.path] + one if row.path in totals else one
    return Times(
        how=all_windows[-1].how,
        wall_ns=sum(window.wall_ns for window in all_windows),
        regions=in_order(totals),
        cpu_ns=sum_known(window.cpu_ns for window in all_windows),
    )


def sum_known(each: Iterable[int | None]) -> int | None:
    """The sum; None where any is not known."""
    total = 0
    for ns in each:
        if ns is None:
            return None
        total += ns
    return total


def series_of(windows: Iterable[Times]) -> dict[str, tuple[int, ...]]:
    """The path of every row of a record, the wall's among them, to its time in each window."""
    each = [
        {WALL: window.wall_ns, **{f"{WALL}/{row.path}": row.total_ns for row in window.regions}}
        for window in windows
    ]
    return {path: tuple(times.get(path, 0) for times in each) for path in dict.fromkeys(chain(*each))}


def in_order(totals: Mapping[str, Total], above: str = "") -> tuple[Region, ...]:
    """Rows by path, parents before their children, also where a child came after its parent's sibling."""
    rows = list[Region]()
    for path, one in totals.items():
        if path.rpartition("/")[0] == above:
            row = Region(path=path, calls=one.calls, total_ns=one.ns, cpu_ns=one.cpu_ns)
            rows += [row, *in_order(totals, path)]
    return tuple(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimesLine:
    """One line of the tree."""

    name: str
    depth: int
    ns: int
    share: float
    """Of the wall."""
    calls: int | None = None
    largest: bool = False
    cpu_ns: int | None = None

    @property
    def ms(self) -> float:
        return self.ns / 1e6

    @property
    def worked(self) -> float | None:
        """Of its time that its thread was on a core for; None where nobody looked."""
        return self.cpu_ns / self.ns if self.cpu_ns is not None and self.ns > 0 else None


def tree_lines(times: Times) -> tuple[TimesLine, ...]:
    """The wall, then every row above its parts; the lines of one depth add up to the line they are below."""
    whole = max(times.wall_ns, 1)
    largest = times.largest

    def line(name: str, depth: int, ns: int, cpu_ns: int | None, region: Region | None = None) -> TimesLine:
        return TimesLine(
            name=name,
            depth=depth,
            ns=ns,
            share=ns / whole,
            calls=region.calls if region else None,
            largest=region is not None and region is largest,
            cpu_ns=cpu_ns,
        )

    def below(path: str, depth: int) -> Iterator[TimesLine]:
        for region in times.below(path):
            yield line(region.name, depth, region.total_ns, region.cpu_ns, region)
            yield from below(region.path, depth + 1)
        if times.below(path):
            name = CALL if path == ENVIRONMENT else REST
            yield line(name, depth, times.rest_ns(path), times.rest_cpu_ns(path))

    return (line("window", 0, times.wall_ns, times.cpu_ns), *below("", 1))


def caption(times: Times) -> str:
    share = times.unaccounted_ns / max(times.wall_ns, 1)
    return f"{share:.1%} unaccounted in all; timed by {times.how}: {HOW[times.how]}"


def tree_text(times: Times, turns: int = 1) -> str:
    """The tree in plain lines, for a log; of several turns of a loop, the time of one."""
    lines = tree_lines(times)
    clocked = any(line.worked is not None for line in lines)
    rows = [
        f"{'  ' * line.depth + line.name:<32} {line.ms / max(turns, 1):>12,.2f} ms {line.share:>7.1%}"
        + (f" {on_core(line):>10}" if clocked else "")
        + (f"  {LARGEST}" if line.largest else "")
        for line in lines
    ]
    return "\n".join([*map(str.rstrip, rows), caption(times)])


def on_core(line: TimesLine) -> str:
    """How much of a row's own time was worked; empty where nobody looked."""
    return "" if line.worked is None else f"{line.worked:.0%} CPU"
