"""Values of findings as people read them: the name of a column says its unit."""

from typing import Any

from hotloop.report.units import percent, three_digits

TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
CODE = ("code", "function", "operator", "site")
"""Columns whose cells are names or lines of a program."""
LARGE = 1_000
"""A number from there on is drawn without a fraction."""
SHOWN = {"ns": "", "bytes": "", "share": "%"}
"""Units in a column's name, which its values are drawn by, and what is left of them in its heading."""


def heading(column: str) -> str:
    """A column's name in words, without the unit that its cells show."""
    words = column.split("_")
    shown = [SHOWN.get(word, word) for word in words] if len(words) > 1 else words
    return " ".join(filter(None, shown)).replace("env step", "env-step")


def cell(column: str, value: Any) -> str:
    """One value, by its column's unit; nothing where there is none."""
    words = column.split("_")
    if value is None:
        return ""
    if isinstance(value, (str, bool)):
        return str(value)
    if "ns" in words:
        return scaled(value, TIMES)
    if "bytes" in words:
        return scaled(value, SIZES)
    if "share" in words:
        return percent(value)
    return f"{value:,}" if isinstance(value, int) else plain_float(value)


def plain_float(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= LARGE else f"{value:.4g}"


def scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    """Three digits and the largest unit that leaves something before the point."""
    size, unit = next((each for each in units if abs(value) >= each[0]), units[-1])
    shown = value / size
    return f"{'-' if shown < 0 else ''}{three_digits(abs(shown))} {unit}" if value else f"0 {unit}"


def is_number(column: str, rows: tuple[tuple[Any, ...], ...], index: int) -> bool:
    """Whether a column is drawn flush right."""
    return column != "line" and all(not isinstance(row[index], str) for row in rows)


def facts_of(facts: dict[str, Any]) -> dict[str, str]:
    """The single values of a finding, in words."""
    return {
        heading(name): cell(name, value)
        for name, value in facts.items()
        if value is not None and not isinstance(value, (dict, list))
    }
