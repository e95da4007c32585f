"""The tree of a run's time as lines that add up, for a log and for whoever draws it."""

from collections.abc import Iterator
from dataclasses import dataclass

from hotloop.train.times import ENVIRONMENT, Region, Times

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
class Line:
    """One line of the tree."""

    name: str
    depth: int
    ns: int
    share: float
    """Of the wall."""
    calls: int | None = None
    largest: bool = False

    @property
    def ms(self) -> float:
        return self.ns / 1e6


def tree_lines(times: Times) -> tuple[Line, ...]:
    """The wall, then every row above its parts; the lines of one depth add up to the line they are below."""
    whole = max(times.wall_ns, 1)
    largest = times.largest

    def line(name: str, depth: int, ns: int, region: Region | None = None) -> Line:
        marked = region is not None and region is largest
        calls = region.calls if region else None
        return Line(name=name, depth=depth, ns=ns, share=ns / whole, calls=calls, largest=marked)

    def below(path: str, depth: int) -> Iterator[Line]:
        for region in times.below(path):
            yield line(region.name, depth, region.total_ns, region)
            yield from below(region.path, depth + 1)
        if times.below(path):
            yield line(CALL if path == ENVIRONMENT else REST, depth, times.rest_ns(path))

    return (line("window", 0, times.wall_ns), *below("", 1))


def caption(times: Times) -> str:
    share = times.unaccounted_ns / max(times.wall_ns, 1)
    return f"{share:.1%} unaccounted in all; timed by {times.how}: {HOW[times.how]}"


def tree_text(times: Times) -> str:
    """The tree in plain lines, for a log."""
    rows = [
        f"{'  ' * line.depth + line.name:<32} {line.ms:>12,.2f} ms {line.share:>7.1%}"
        + (f"  {LARGEST}" if line.largest else "")
        for line in tree_lines(times)
    ]
    return "\n".join([*rows, caption(times)])
