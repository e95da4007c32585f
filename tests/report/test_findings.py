from io import StringIO
from typing import Any

from rich.console import Console

from hotloop.core.record import Finding, Table
from hotloop.report.findings import MOST_ROWS, draw_findings


def drawn(*findings: Finding) -> str:
    console = Console(width=120, record=True, file=StringIO())
    console.print(draw_findings(findings))
    return console.export_text()


def table(columns: tuple[str, ...], *rows: tuple[Any, ...]) -> Table:
    return Table(title="Mine", columns=columns, rows=rows)


def test_a_finding_has_its_name_its_facts_and_the_first_rows() -> None:
    rows = tuple((f"f{number}", 1_000 * number) for number in range(20))
    text = drawn(
        Finding(probe="cprofile", facts={"wall_ns": 2_000}, tables=(table(("function", "own_ns"), *rows),))
    )
    assert "cprofile  wall 2.00 µs" in text
    assert "Mine" in text
    assert [f"f{number} " in text for number in range(12)] == [True] * MOST_ROWS + [False] * 2


def test_of_a_function_the_lines_that_ran_are_shown_in_their_order() -> None:
    rows = tuple((number, None if number == 3 else number, f"line {number}") for number in range(20))
    text = drawn(Finding(probe="line", tables=(table(("line", "hits", "code"), *rows),)))
    assert "line 19" in text
    assert "line 3" not in text
    assert text.index("line 4") < text.index("line 18")


def test_resources_and_empty_tables_are_not_drawn() -> None:
    assert drawn(Finding(probe="resources", facts={"threads": 3})).strip() == ""
    assert "Mine" not in drawn(Finding(probe="memory", tables=(table(("site",)),)))
