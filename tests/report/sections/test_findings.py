from typing import Any

import pytest
from support.drawn import text as drawn_text

from hotloop.core.record.profile import Finding, Table
from hotloop.report.kinds.times import MOST_ROWS, column_words, facts_of, findings, is_number, value_words


def drawn(*found: Finding) -> str:
    return drawn_text(findings(found))


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


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        ("own_ns", 1_234, "1.23 µs"),
        ("own_ns", 0, "0 ns"),
        ("own_ns", 12, "12.0 ns"),
        ("wall_ns", 2_500_000_000, "2.50 s"),
        ("peak_bytes", 1_057, "1.03 KiB"),
        ("growth_bytes_low", -2_048.0, "-2.00 KiB"),
        ("own_share", 0.5, "50.0%"),
        ("calls", 1_234_567, "1,234,567"),
        ("slowdown", 1.23456, "1.235"),
        ("per_env_step", 33_026.4, "33,026"),
        ("isa", "x86", "x86"),
        ("hits", None, ""),
    ],
)
def test_a_value_is_drawn_by_the_unit_in_its_columns_name(column: str, value: object, shown: str) -> None:
    assert value_words(column, value) == shown


def test_a_heading_leaves_the_unit_to_the_cells() -> None:
    assert column_words("own_ns") == "own"
    assert column_words("own_share") == "own %"
    assert column_words("share") == "share"
    assert column_words("bytes_per_env_step") == "per env-step"


def test_facts_are_single_values() -> None:
    facts = {"wall_ns": 1_000, "gpu": None, "runs": [1, 2], "devices": {"a": 1}}
    assert facts_of(facts) == {"wall": "1.00 µs"}


def test_numbers_are_flush_right_and_line_numbers_are_not() -> None:
    rows = ((1, "a", 2.0), (2, "b", None))
    assert [is_number(name, rows, index) for index, name in enumerate(("line", "code", "own_ns"))] == [
        *(False, False, True)
    ]
