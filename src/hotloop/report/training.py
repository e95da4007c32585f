"""A training run drawn for people: the tree of its time, and its curves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.report.terminal import bar, plain_table
from hotloop.report.units import percent
from hotloop.train.times import ENVIRONMENT, Region, Times

REST = "unaccounted"
CALL = "call and waiting"
"""What the environment's step has beyond its phases: the call into it, and its threads' waiting."""
LARGEST = "◀ largest"
SPARKS = "▁▂▃▄▅▆▇█"
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


def draw_tree(times: Times, title: str = "where the time went") -> RenderableType:
    """The tree as a table, and under it how it was timed and what is in no part."""
    table = plain_table(title)
    for heading in ("ms", "of wall", "calls"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("")
    for line in tree_lines(times):
        if line.calls is None and line.depth > 1 and abs(line.share) < 0.0005:
            continue  # a rest too small to show
        note = Text(bar(line.share) if line.depth else "", "cyan")
        if line.largest:
            note.append(f" {LARGEST}", "bold yellow")
        table.add_row(
            "  " * line.depth + line.name,
            f"{line.ms:,.2f}",
            percent(line.share),
            "" if line.calls is None else f"{line.calls:,}",
            note,
            style="bold" if line.depth == 0 else "",
        )
    table.caption = caption(times)
    table.caption_justify = "left"
    return table


def caption(times: Times) -> str:
    share = times.unaccounted_ns / max(times.wall_ns, 1)
    return f"{percent(share)} unaccounted in all; timed by {times.how}: {HOW[times.how]}"


def tree_text(times: Times) -> str:
    """The tree in plain lines, for a log."""
    rows = [
        f"{'  ' * line.depth + line.name:<32} {line.ms:>12,.2f} ms {line.share:>7.1%}"
        + (f"  {LARGEST}" if line.largest else "")
        for line in tree_lines(times)
    ]
    return "\n".join([*rows, caption(times)])


def sparkline(values: Sequence[float], width: int = 40) -> str:
    """The last values as a line of blocks, lowest to highest."""
    shown = values[-width:]
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    scale = (len(SPARKS) - 1) / (high - low) if high > low else 0.0
    return "".join(SPARKS[round((value - low) * scale)] for value in shown)


def grid_of_facts() -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    return table
