"""Sections drawn for a terminal."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import assert_never

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from hotloop.report.section import (
    Branch,
    Column,
    Curve,
    Drawing,
    Facts,
    Heading,
    Lines,
    Note,
    Picture,
    Section,
    Table,
    Tone,
    Tree,
    Words,
    curve_words,
    spans_of,
    text_of,
)

BAR_CELLS, FEWEST_CELLS = 24, 6  # Of a whole bar, and where there is little room for it
GAP = 3  # Between two columns
LONGEST_WORD = 20  # Characters of a name that are worth leaving out a column for
INDENT = "  "
COLOURS: dict[Tone, str] = {"plain": "", "good": "green", "warn": "yellow", "bad": "red", "dim": "dim"}
BAR_COLOUR = "cyan"
NAME_WIDTH = 10  # Of a fact, at least, so that facts under one another stand in line


def draw(sections: Iterable[Section]) -> RenderableType:
    """Return one under another."""
    return Group(*(part for section in sections for part in draw_section(section)))


def draw_section(section: Section) -> Iterator[RenderableType]:
    match section:
        case Heading():
            yield from [Text(), line(section.words)] if section.apart else [line(section.words)]
        case Note():
            yield line(section.words)
        case Lines() | Drawing():
            yield from map(line, section.lines)
        case Facts():
            yield facts(section)
        case Table():
            yield DeferredTable(partial(table, section))
        case Tree():
            yield DeferredTable(partial(tree, section))
        case Curve():
            yield Text(curve_words(section.values))
        case Picture():
            yield from (part for each in section.instead for part in draw_section(each))
        case _:
            assert_never(section)


def line(words: Words) -> Text:
    """Return words without what a terminal would obey: those of a record are only shown."""
    text = Text()
    for span in spans_of(words):
        harmless = span.text
        if not harmless.isprintable():
            harmless = "".join(each if each.isprintable() or each in "\n\t" else "?" for each in span.text)
        text.append(harmless, " ".join(filter(None, ("bold" if span.strong else "", COLOURS[span.tone]))))
    return text


def facts(section: Facts) -> RichTable:
    shown = RichTable(box=None, show_header=False, pad_edge=False)
    shown.add_column(style="dim", no_wrap=True, min_width=NAME_WIDTH)
    shown.add_column()
    for name, value in section.rows:
        shown.add_row(
            line(name), Text(curve_words(value.values)) if isinstance(value, Curve) else line(value)
        )
    return shown


@dataclass(frozen=True, slots=True)
class DeferredTable:
    """What is drawn once its width is known; None if the output is no terminal."""

    draw: Callable[[int | None], Iterable[RenderableType]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.draw(options.max_width if console.is_terminal else None)


def table(section: Table, room: int | None) -> Iterator[RenderableType]:
    """Yield the columns that there is room for, and the names of the others."""
    needs = [min_width(section, index) for index in range(len(section.columns))]
    kept = fitting(section.columns, needs, room)
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for index in kept:
        add_column(shown, section.columns[index])
    for number, row in enumerate(section.rows):
        cells = [line(row[index]) for index in kept if index < len(row)]
        shown.add_row(*cells, end_section=number in section.ends)
    yield shown
    without = [column.name for index, column in enumerate(section.columns) if index not in kept]
    if without:
        yield Text(f"no room in {room} columns for {', '.join(without)}", "dim")


def fitting(columns: Sequence[Column], needs: Sequence[int], room: int | None) -> list[int]:
    """Return the columns to draw; of the wide ones, the first go until the rest has room."""
    kept = list(range(len(columns)))
    for index, column in enumerate(columns):
        if room is not None and column.wide and breadth([needs[each] for each in kept]) > room:
            kept.remove(index)
    return kept


def breadth(needs: Sequence[int]) -> int:
    """Return the width of a table of columns that need so much."""
    return sum(needs) + GAP * len(needs) - 1


def min_width(section: Table, index: int) -> int:
    """Return characters that a column cannot do without: a cell, or a word where it may be broken."""
    column = section.columns[index]
    cells = [column.name, *(text_of(row[index]) for row in section.rows if index < len(row))]
    if column.whole or column.kind == "number":
        return max(map(cell_len, cells))
    return min(max(cell_len(word) for cell in cells for word in cell.split() or [""]), LONGEST_WORD)


def add_column(shown: RichTable, column: Column) -> None:
    is_number = column.kind == "number"
    shown.add_column(
        column.name,
        justify="right" if is_number else "left",
        no_wrap=column.whole or is_number,
        overflow="ellipsis" if column.whole or is_number else "fold",
        max_width=column.width,
    )


def tree(section: Tree, room: int | None) -> Iterator[RenderableType]:
    """Yield a table whose first column is indented, with bars at its end as long as there is room."""
    shown = RichTable(section.title, box=box.SIMPLE_HEAD, pad_edge=False)
    for name in section.columns:
        shown.add_column(name, justify="right", no_wrap=True)
    if section.has_bars:
        shown.add_column("")
    cells = bar_cells(section, room)
    for branch in section.branches:
        row: list[RenderableType] = [line(indented(branch)), *branch.values]
        if section.has_bars:
            drawn = Text(bar(branch.share, cells) if branch.share is not None else "", BAR_COLOUR)
            row.append(drawn.append(" ").append_text(line(branch.mark)) if branch.mark else drawn)
        shown.add_row(*row, style="bold" if branch.strong else "", end_section=branch.end)
    yield shown


def indented(branch: Branch) -> str:
    return INDENT * branch.depth + branch.name


def bar_cells(section: Tree, room: int | None) -> int:
    """Return how long a bar may be for every other column to be whole."""
    if room is None:
        return BAR_CELLS
    rows = [(section.title, *section.columns), *((indented(each), *each.values) for each in section.branches)]
    left = room - breadth([*(max(map(cell_len, column)) for column in zip(*rows, strict=True)), 0])
    longest = []
    for each in section.branches:
        if each.share:
            mark = cell_len(text_of(each.mark)) + 1 if each.mark else 0
            longest.append(int((left - mark) / each.share))
    return max(FEWEST_CELLS, min([BAR_CELLS, *(cells for cells in longest if cells > 0)]))


def bar(share: float, cells: int = BAR_CELLS) -> str:
    """Return a bar of block characters, to an eighth of a cell."""
    eighths = round(max(0.0, min(1.0, share)) * cells * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
