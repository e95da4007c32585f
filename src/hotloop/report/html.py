"""A page as one HTML file, which needs nothing but itself."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import assert_never

from hotloop.report.section import (
    Branch,
    Chapter,
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

BAR_PIXELS, INDENT_PIXELS = 300, 18
CURVE_WIDTH, CURVE_HEIGHT = 240, 28

STYLE = """
:root { color-scheme: light; --ink: #1f2328; --soft: #656d76; --line: #d8dee4; --bar: #f0a35e; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1180px; padding: 32px 24px 64px; color: var(--ink); background: #fff;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 40px 0 10px; }
h3 { font-size: 15px; margin: 22px 0 8px; color: var(--soft); font-weight: 600; }
.when { color: var(--soft); margin: 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 3px 20px; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: 0 48px; }
@media (max-width: 800px) { .two { grid-template-columns: 1fr; } }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
th, td { padding: 4px 12px 4px 0; border-bottom: 1px solid var(--line); text-align: left; }
th { color: var(--soft); font-weight: 500; } .number { text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.code { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 12.5px; white-space: pre; }
.bar { display: inline-block; height: 10px; background: var(--bar); border-radius: 2px; }
pre.drawing { font: 12px/1.25 ui-monospace, Menlo, Consolas, monospace; overflow-x: auto; }
.sum, .strong { font-weight: 600; } li { margin: 3px 0; }
.good { color: #1a7f37; } .warn { color: #9a6700; } .bad { color: #cf222e; } .dim { color: var(--soft); }
code { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 0.92em; }
svg.curve { width: 240px; height: 28px; vertical-align: middle; }
svg.curve polyline { fill: none; stroke: var(--bar); stroke-width: 1.5; }
svg.flames { border: 1px solid var(--line); border-radius: 6px; margin-top: 8px; display: block; }
"""


def draw_page(page: Page) -> str:
    """Return what is read at one glance stands side by side at the top, the rest below in its order."""
    title = escape(page.title)
    glance = [draw_chapter(chapter) for chapter in page.chapters if chapter.summary]
    body = "\n".join(
        [
            f"<h1>{title}</h1>",
            f'<p class="when">{escape(page.when)}</p>',
            # The first on the left, the others on the right.
            f'<div class="two"><section>{"".join(glance[:1])}</section>'
            f"<section>{''.join(glance[1:])}</section></div>"
            if glance
            else "",
            *(draw_chapter(chapter) for chapter in page.chapters if not chapter.summary),
        ]
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def draw_chapter(chapter: Chapter) -> str:
    return f"<h2>{escape(chapter.title)}</h2>\n{draw(chapter.sections)}"


def draw(sections: Iterable[Section]) -> str:
    """Return one under another."""
    return "\n".join(part for section in sections for part in draw_section(section))


def draw_section(section: Section) -> Iterator[str]:
    match section:
        case Heading():
            yield f"<h{section.level}>{escape(text_of(section.words))}</h{section.level}>"
        case Note():
            yield f"<p>{words(section.words)}</p>"
        case Lines():
            yield f"<ul>{''.join(f'<li>{words(line)}</li>' for line in section.lines)}</ul>"
        case Facts():
            told = (
                (name, curve(row) if isinstance(row, Curve) else words(row)) for name, row in section.rows
            )
            rows = "".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in told)
            yield f"<dl>{rows}</dl>"
        case Table():
            yield table(section)
        case Tree():
            yield tree(section)
        case Curve():
            yield f"<p>{curve(section)}</p>"
        case Drawing():
            yield f'<pre class="drawing">{chr(10).join(map(words, section.lines))}</pre>'
        case Picture():
            yield section.svg
        case _:
            assert_never(section)


def words(line: Words) -> str:
    """Return escaped text, in elements that say what it means where it means more than it says."""
    parts = []
    for part in spans_of(line):
        tone, strong = part.tone if part.tone != "plain" else "", "strong" if part.strong else ""
        text = f"<code>{escape(part.text)}</code>" if part.code else escape(part.text)
        parts.append(f'<span class="{f"{tone} {strong}".strip()}">{text}</span>' if tone or strong else text)
    return "".join(parts)


def curve(series: Curve) -> str:
    """Return the values as a line, with the first and the last in words."""
    points = polyline(series.values, CURVE_WIDTH, CURVE_HEIGHT, 2)
    box = f'viewBox="0 0 {CURVE_WIDTH} {CURVE_HEIGHT}"'
    told = curve_words(series.values, width=0)
    return f'{escape(told)} <svg class="curve" {box}><polyline points="{points}"/></svg>'


def polyline(values: Sequence[float], width: int, height: int, margin: int) -> str:
    """Return the points of a line from the lowest to the highest value, with a margin above and below."""
    low, high = min(values), max(values)
    across = width / max(len(values) - 1, 1)
    up = (height - 2 * margin) / (high - low) if high > low else 0.0
    return " ".join(
        f"{k * across:.1f},{height - margin - (value - low) * up:.1f}" for k, value in enumerate(values)
    )


def table(section: Table) -> str:
    if not section.rows:
        return "<p>None.</p>"
    head = "".join(cell("th", column, column.name) for column in section.columns)
    pairs = (zip(section.columns, row, strict=False) for row in section.rows)
    return framed(head, "".join(f"<tr>{''.join(cell('td', *pair) for pair in row)}</tr>" for row in pairs))


def cell(tag: str, column: Column, content: Words) -> str:
    kind = "" if column.kind == "text" else column.kind
    return f'<{tag} class="{kind}">{words(content)}</{tag}>'


def tree(section: Tree) -> str:
    """Return a table whose first column is indented, with bars at its end."""
    rows = []
    for branch in section.branches:
        numbers = "".join(f'<td class="number">{escape(value)}</td>' for value in branch.values)
        indent = branch.depth * INDENT_PIXELS
        rows.append(
            f'<tr class="{"sum" if branch.strong else ""}"><td style="padding-left:{indent}px">'
            f"{escape(branch.name)}</td>{numbers}{f'<td>{bar(branch)}</td>' if section.has_bars else ''}</tr>"
        )
    names = "".join(f'<th class="number">{escape(name)}</th>' for name in section.columns)
    heads = f"<th>{escape(section.title)}</th>{names}{'<th></th>' if section.has_bars else ''}"
    return framed(heads, "".join(rows))


def bar(branch: Branch) -> str:
    """Return a branch's bar, and its mark after it."""
    mark = f" {words(branch.mark)}" if branch.mark else ""
    if branch.share is None:
        return mark
    return f'<span class="bar" style="width:{max(branch.share, 0) * BAR_PIXELS:.1f}px"></span>{mark}'


def framed(head: str, rows: str) -> str:
    return f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'
