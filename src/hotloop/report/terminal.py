"""Sections drawn for a terminal."""

from collections.abc import Iterable, Iterator
from typing import assert_never

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from hotloop.report.sections.section import (
    Branch,
    Column,
    Curve,
    Facts,
    Heading,
    Lines,
    Note,
    Picture,
    Section,
    Span,
    Table,
    Tone,
    Tree,
    Words,
    spans_of,
)
from hotloop.report.units import curve_words

BAR_CELLS = 24
INDENT = "  "
COLOURS: dict[Tone, str] = {"plain": "", "good": "green", "warn": "yellow", "bad": "red", "dim": "dim"}
BAR_COLOUR = "cyan"
NAME_WIDTH = 10
"""Of a fact, at least, so that facts under one another stand in line."""


def draw(sections: Iterable[Section]) -> RenderableType:
    """One under another."""
    return Group(*(part for section in sections for part in drawn(section)))


def drawn(section: Section) -> Iterator[RenderableType]:
    match section:
        case Heading():
            yield from [Text(), line(section.words)] if section.apart else [line(section.words)]
        case Note():
            yield line(section.words)
        case Lines():
            yield from map(line, section.lines)
        case Facts():
            yield facts(section)
        case Table():
            yield table(section)
        case Tree():
            yield tree(section)
        case Curve():
            yield Text(curve_words(section.values))
        case Picture():
            return
        case _:
            assert_never(section)


def line(words: Words) -> Text:
    return Text.assemble(*((span.text, style(span)) for span in spans_of(words)))


def style(span: Span) -> str:
    return " ".join(filter(None, ("bold" if span.strong else "", COLOURS[span.tone])))


def facts(section: Facts) -> Grid:
    grid = Grid(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="dim", no_wrap=True, min_width=NAME_WIDTH)
    grid.add_column()
    for name, value in section.rows:
        grid.add_row(name, Text(curve_words(value.values)) if isinstance(value, Curve) else line(value))
    return grid


def table(section: Table) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in section.columns:
        add_column(grid, column)
    for index, row in enumerate(section.rows):
        grid.add_row(*map(line, row), end_section=index in section.ends)
    return grid


def add_column(grid: Grid, column: Column) -> None:
    is_number = column.kind == "number"
    grid.add_column(
        column.name,
        justify="right" if is_number else "left",
        no_wrap=column.whole or is_number,
        max_width=column.width,
    )


def tree(section: Tree) -> Grid:
    """A table whose first column is indented, with bars at its end."""
    grid = Grid(section.title, box=box.SIMPLE_HEAD, pad_edge=False)
    for name in section.columns:
        grid.add_column(name, justify="right", no_wrap=True)
    if section.has_bars:
        grid.add_column("")
    for branch in section.branches:
        cells = [INDENT * branch.depth + branch.name, *branch.values]
        tail = [glance(branch)] if section.has_bars else []
        grid.add_row(*cells, *tail, style="bold" if branch.strong else "", end_section=branch.end)
    return grid


def glance(branch: Branch) -> Text:
    """A branch's bar, and its mark after it."""
    shown = Text(bar(branch.share) if branch.share is not None else "", BAR_COLOUR)
    return shown.append(" ").append_text(line(branch.mark)) if branch.mark else shown


def bar(share: float) -> str:
    """A bar of block characters, to an eighth of a cell."""
    eighths = round(max(0.0, min(1.0, share)) * BAR_CELLS * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
