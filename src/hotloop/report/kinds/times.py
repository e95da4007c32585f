"""Where time went: a TimeTree as every report draws it, and what is said below it."""

from collections.abc import Callable, Mapping

from hotloop.core.record.profile import read_times
from hotloop.core.record.record import Record
from hotloop.core.time_tree import HOW, LARGEST, WHOLE, How, TimeTree, caption
from hotloop.report.section import Branch, Note, Section, Span, Tree
from hotloop.report.units import percent

SMALLEST = 0.0005  # Of the whole; a smaller rest is not worth a line

Cell = Callable[[TimeTree, float], str]
"""What a column shows of a row, of which the second is its share of the whole."""


def of_wall(_: TimeTree, share: float) -> str:
    return percent(share)


def calls_of(row: TimeTree, _: float) -> str:
    return f"{row.calls:,}" if row.calls else ""


def draw_times(
    title: str,
    tree: TimeTree,
    columns: Mapping[str, Cell],
    *,
    whole: str = WHOLE,
    largest: str | None = None,
) -> Tree:
    """Draw a tree, the whole first, with a bar for the share of each row; `largest` is the path to mark."""

    def branch(row: TimeTree) -> Branch:
        share = row.total_ns / max(tree.total_ns, 1)
        return Branch(
            name=row.name or whole,
            depth=row.depth,
            values=tuple(cell(row, share) for cell in columns.values()),
            share=share if row.path else None,
            strong=not row.path,
            mark=Span(LARGEST, "warn", strong=True) if row.path == largest else "",
        )

    return Tree(title=title, columns=tuple(columns), branches=tuple(map(branch, tree.walk())))


def draw_account(title: str, tree: TimeTree, columns: Mapping[str, Cell]) -> tuple[Section, ...]:
    """Draw a tree with what is in no part, and below it how it was timed."""
    largest, drawn = tree.largest, tree.with_rests(SMALLEST * tree.total_ns)
    rows = draw_times(title, drawn, columns, largest=largest.path if largest else None)
    return rows, Note(words=Span(caption(tree), "dim"))


def account_of(record: Record) -> TimeTree | None:
    """Return the tree that a run or a training keeps; None if nothing was timed."""
    last: dict[str, How] = {how: how for how in HOW}
    return read_times(record.phases, last.get(record.method.clock.rpartition(" ")[2], "sync"))
