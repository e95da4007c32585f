"""What probes found, drawn for a terminal."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from hotloop.core.record import Finding, Table
from hotloop.report.cells import cell, facts_of, heading, is_number
from hotloop.report.terminal import plain_table

MOST_ROWS = 10
CODE_WIDTH = 72
"""Characters of a line of code that are shown."""
QUIET = ("resources",)
"""Probes whose facts have a line of their own elsewhere."""


def draw_findings(findings: Sequence[Finding]) -> RenderableType:
    """One after another, each with its facts and the beginnings of its tables."""
    return Group(*(draw_finding(found) for found in findings if found.probe not in QUIET))


def draw_finding(found: Finding) -> RenderableType:
    facts = ", ".join(f"{name} {value}" for name, value in facts_of(found.facts).items())
    title = Text.assemble("\n", (found.probe, "bold"), f"  {facts}")
    return Group(title, *(draw_table(table) for table in found.tables if table.rows))


def draw_table(table: Table) -> RenderableType:
    """The first rows; of a table of lines, in the order of the code, those that ran."""
    is_code = "code" in table.columns
    drawn = plain_table()
    for index, column in enumerate(table.columns):
        numbers = is_number(column, table.rows, index)
        title = table.title if index == 0 and not is_code else heading(column)
        width = CODE_WIDTH if column == "code" else None
        drawn.add_column(
            title, justify="right" if numbers else "left", no_wrap=numbers or is_code, max_width=width
        )
    for row in [row for row in table.rows if row[1] is not None] if is_code else table.rows[:MOST_ROWS]:
        drawn.add_row(*(cell(column, value) for column, value in zip(table.columns, row, strict=True)))
    return Group(Text(table.title), drawn) if is_code else drawn
