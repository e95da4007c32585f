"""A profile with what its probes found as one HTML page, which needs nothing but itself."""

from collections.abc import Iterator, Mapping
from html import escape

from hotloop.core.record import Finding, Record, Table
from hotloop.core.record.stacks import Stack
from hotloop.report import flames, slow
from hotloop.report.cells import CODE, cell, facts_of, heading, is_number
from hotloop.report.markdown import (
    ELSEWHERE,
    PREVIOUS,
    configuration,
    notes,
    previous,
    resources,
    results,
    time_rows,
)

Pictures = Mapping[str, Mapping[Stack, float]]
"""Probe to the stacks it saw."""

STYLE = """
:root { color-scheme: light; --ink: #1f2328; --soft: #656d76; --line: #d8dee4; --bar: #f0a35e; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1180px; padding: 32px 24px 64px; color: var(--ink); background: #fff;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 40px 0 10px; }
h3 { font-size: 15px; margin: 22px 0 8px; color: var(--soft); font-weight: 600; }
.when, .files { color: var(--soft); margin: 0; }
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
.sum { font-weight: 600; } li { margin: 3px 0; }
svg.flames { border: 1px solid var(--line); border-radius: 6px; margin-top: 8px; display: block; }
"""


def draw_page(record: Record, pictures: Pictures) -> str:
    """The whole page: the profile first, then each probe with its tables and its flames."""
    name = escape(record.target.name)
    body = "\n".join(
        [
            f"<h1>Profile of {name}</h1>",
            f'<p class="when">{escape(record.created[:16].replace("T", " "))} UTC</p>',
            *overview(record),
            *slow.page_parts(record),
            *(part for found in probed_of(record) for part in draw_finding(found, pictures)),
            "<h2>Notes</h2><ul>",
            *(f"<li>{escape(note)}</li>" for note in notes(record)),
            "</ul>",
        ]
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Profile of {name}</title>'
        f"<style>{STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def probed_of(record: Record) -> list[Finding]:
    """What has no section of its own form above."""
    return [found for found in record.findings if found.probe not in ELSEWHERE]


def overview(record: Record) -> Iterator[str]:
    yield '<div class="two"><section><h2>Configuration</h2>'
    yield definitions({name: value.replace("`", "") for name, value in configuration(record)})
    yield "</section><section>"
    if record.method.rounds:
        yield f"<h2>Results</h2>{definitions(dict(results(record)))}"
    if record.resources:
        yield f"<h2>Resources</h2>{definitions(dict(resources(record.resources, record)))}"
    if record.comparisons:
        yield f"<h2>{PREVIOUS}</h2>{definitions(dict(previous(record.comparisons[-1])))}"
    yield "</section></div>"
    rows = list(time_rows(record))
    if rows:
        yield '<h2>Time Breakdown</h2><div class="wide"><table><tr><th>Component</th>'
        yield '<th class="number">Avg Time</th><th class="number">% of Total</th><th></th></tr>'
        yield from (draw_row(*row) for row in rows)
        yield "</table></div>"


def draw_row(name: str, depth: int, time: str, share: float, is_sum: bool) -> str:
    """One component, with a bar for its share where it is no sum of others."""
    bar = "" if is_sum else f'<span class="bar" style="width:{max(share, 0) * 300:.1f}px"></span>'
    return (
        f'<tr class="{"sum" if is_sum else ""}"><td style="padding-left:{depth * 18}px">{escape(name)}</td>'
        f'<td class="number">{time}</td><td class="number">{share:.1%}</td><td>{bar}</td></tr>'
    )


def draw_finding(found: Finding, pictures: Pictures) -> Iterator[str]:
    yield f"<h2>{escape(found.probe)}</h2>"
    yield definitions(facts_of(found.facts))
    if found.files:
        yield f'<p class="files">Files: {escape(", ".join("." + name for name in found.files))}</p>'
    if found.probe in pictures:
        yield flames.draw(
            pictures[found.probe], f"{found.probe}: click a box to zoom, the top one to go back"
        )
    for table in found.tables:
        if table.rows:
            yield f'<h3>{escape(table.title)}</h3><div class="wide">{draw_table(table)}</div>'


def definitions(facts: Mapping[str, str]) -> str:
    told = (f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items() if value)
    return f"<dl>{''.join(told)}</dl>"


def draw_table(table: Table) -> str:
    kinds = [style(column, table, index) for index, column in enumerate(table.columns)]
    head = "".join(
        f'<th class="{kind}">{escape(heading(column))}</th>'
        for kind, column in zip(kinds, table.columns, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td class="{kind}">{escape(cell(column, value))}</td>'
            for kind, column, value in zip(kinds, table.columns, row, strict=True)
        )
        + "</tr>"
        for row in table.rows
    )
    return f"<table><tr>{head}</tr>{rows}</table>"


def style(column: str, table: Table, index: int) -> str:
    if column in CODE:
        return "code"
    return "number" if is_number(column, table.rows, index) else ""
