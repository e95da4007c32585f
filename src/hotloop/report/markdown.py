"""Sections as Markdown."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from hotloop.report.section import (
    Column,
    Curve,
    Drawing,
    Facts,
    Heading,
    Lines,
    Note,
    Page,
    Picture,
    Section,
    Table,
    Tree,
    Words,
    curve_words,
    spans_of,
    text_of,
)

NARROW = "\N{NO-BREAK SPACE}"
INDENT = "&nbsp;" * 4


def draw_page(page: Page) -> str:
    """Return the whole page."""
    parts = [f"# {page.title}" + (f", {page.when}" if page.when else "")]
    for chapter in page.chapters:
        parts += [f"## {chapter.title}", *blocks(chapter.sections)]
    return "\n\n".join(parts) + "\n"


def draw(sections: Iterable[Section]) -> str:
    """Return one under another."""
    return "\n\n".join(blocks(sections)) + "\n"


def blocks(sections: Iterable[Section]) -> list[str]:
    """Return the text of each section that has any."""
    return [text for text in ("\n".join(lines_of(section)) for section in sections) if text]


def lines_of(section: Section) -> Iterator[str]:
    match section:
        case Heading():
            yield f"{'#' * section.level} {text_of(section.words)}"
        case Note():
            yield words(section.words)
        case Lines():
            yield from (f"- {words(line).strip()}" for line in section.lines)
        case Facts():
            yield from (f"- **{name}**: {fact(value)}" for name, value in section.rows)
        case Table():
            yield from table(section)
        case Tree():
            yield from tree(section)
        case Curve():
            yield curve_words(section.values)
        case Drawing():
            yield from ("```text", *map(text_of, section.lines), "```")
        case Picture():
            yield "\n\n".join(blocks(section.instead))
        case _:
            assert_never(section)


def fact(value: Words | Curve) -> str:
    return curve_words(value.values) if isinstance(value, Curve) else words(value)


def words(line: Words) -> str:
    parts = []
    for part in spans_of(line):
        text = code(part.text) if part.code else harmless(part.text)
        parts.append(f"**{text}**" if part.strong and text.strip() else text)
    return "".join(parts)


TAG = re.compile(r"<(?=[A-Za-z/!?])")  # Where HTML would begin
MARKS = re.compile(r"([`*\\])")  # What gives a name another look


def harmless(text: str) -> str:
    """Return words of others as they are: no line of its own, no HTML, no link."""
    return TAG.sub("&lt;", " ".join(text.splitlines())).replace("](", "]\\(") if text.strip() else text


def name_of(text: str) -> str:
    """Return a name as it was given, letter by letter."""
    return MARKS.sub(r"\\\1", harmless(text))


def code(text: str) -> str:
    """Return part of a program as Markdown shows such, since `<built-in ...>` would be lost."""
    indent = NARROW * (len(text) - len(text.lstrip()))  # plain spaces at the beginning would be dropped
    return f"`{indent}{text.lstrip()}`" if text.strip() else text


def table(section: Table) -> list[str]:
    if not section.rows:
        return ["None."]
    rows = [[cell(*pair) for pair in zip(section.columns, row, strict=False)] for row in section.rows]
    return framed([column.name for column in section.columns], rows)


def cell(column: Column, content: Words) -> str:
    return code(text_of(content)) if column.kind == "code" else words(content)


def tree(section: Tree) -> list[str]:
    """Return a table whose indent shows what is part of what."""
    rows = []
    for branch in section.branches:
        name = f"**{name_of(branch.name)}**" if branch.strong else name_of(branch.name)
        marks = [words(branch.mark)] if branch.mark else []
        rows.append([INDENT * branch.depth + name, *branch.values, *marks])
    mark = [""] if any(branch.mark for branch in section.branches) else []
    return framed([section.title, *section.columns, *mark], rows)


def framed(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return rows filled up to the headings; a cell may hold anything but a line break."""
    filled = ([*row, *[""] * (len(headings) - len(row))] for row in rows)
    cells = (
        [text.replace("|", "\\|") for text in row] for row in (headings, ["---"] * len(headings), *filled)
    )
    return [f"| {' | '.join(row)} |" for row in cells]
