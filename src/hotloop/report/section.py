"""Sections: what a report says, as data that every format draws in its own way.

Nothing here knows a format: a span says what it means, a column what it holds, a branch how much it is
of the whole. Colours, bars, alignment and escapes belong to `terminal`, `markdown` and `html`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Tone = Literal["plain", "good", "warn", "bad", "dim"]  # What words mean to a reader in a hurry
# What a column holds: numbers are flush right and never broken, code is shown as it stands.
Kind = Literal["text", "number", "code"]


@dataclass(frozen=True, slots=True)
class Span:
    """Words of one meaning."""

    text: str
    tone: Tone = "plain"
    strong: bool = False
    code: bool = False  # Whether it is part of a program, or would be typed


Words = str | Span | tuple[str | Span, ...]  # A line of text; plain strings mean nothing beyond what they say


def spans_of(words: Words) -> tuple[Span, ...]:
    """Return a line as the spans it consists of."""
    parts = words if isinstance(words, tuple) else (words,)
    return tuple(part if isinstance(part, Span) else Span(part) for part in parts)


def text_of(words: Words) -> str:
    """Return a line without its meanings."""
    return "".join(span.text for span in spans_of(words))


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """What the sections after it are about."""

    words: Words
    level: int = 3  # Of a page; 1 is its title
    apart: bool = False  # Whether something else ends before it


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One line, or a paragraph of it."""

    words: Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Lines that are one list."""

    lines: tuple[Words, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A series of values from the first to the last."""

    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Names, and what is so of each; a name may come more than once."""

    rows: tuple[tuple[str, Words | Curve], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table."""

    name: str
    kind: Kind = "text"
    whole: bool = False  # Whether its cells are never broken into lines; numbers never are
    width: int | None = None  # Characters that are shown where there is little room
    # Whether it can be done without on a narrow screen; the first of such columns goes first.
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of cells; a row may be shorter than the columns."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Words, ...], ...]
    ends: tuple[int, ...] = ()  # Rows, by their index, after which a part of the table ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One line of a tree."""

    name: str
    values: tuple[str, ...]
    depth: int = 0
    # Of the whole, to be seen at a glance; None if a bar would say nothing: of sums, and of the whole.
    share: float | None = None
    strong: bool = False  # Whether it adds up others
    end: bool = False  # Whether a part of the tree ends after it
    mark: Words = ""  # What a reader must not overlook in it


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Parts of a whole, each below what it is part of."""

    title: str
    columns: tuple[str, ...]  # Of the values, which are numbers
    branches: tuple[Branch, ...]

    @property
    def has_bars(self) -> bool:
        return any(branch.share is not None for branch in self.branches)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Lines of characters that are one picture: each of them has its place."""

    lines: tuple[Words, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An SVG that stands by itself."""

    svg: str
    instead: "Sections" = ()  # What formats without pictures show


Section = Heading | Note | Lines | Facts | Table | Tree | Curve | Drawing | Picture
Sections = tuple[Section, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """A part of a page, under a heading of its own."""

    title: str
    sections: Sections
    summary: bool = False  # Whether it is read at one glance with the others that are


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A report to be kept in a file."""

    title: str
    when: str
    chapters: tuple[Chapter, ...]


def facts(*rows: tuple[str, Words | Curve]) -> Facts:
    """Return the facts that there are: what is empty is left out."""
    return Facts(rows=tuple((name, value) for name, value in rows if value))


def text_columns(*names: str, whole: bool = False) -> tuple[Column, ...]:
    return tuple(Column(name=name, whole=whole) for name in names)


def number_columns(*names: str, wide: bool = False) -> tuple[Column, ...]:
    return tuple(Column(name=name, kind="number", whole=True, wide=wide) for name in names)


def table(columns: Sequence[Column], rows: "Sequence[tuple[Words, ...]]") -> Table:
    return Table(columns=tuple(columns), rows=tuple(rows))
