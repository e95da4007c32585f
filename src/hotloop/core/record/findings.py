"""Findings: what a probe found, small enough for a record; its files lie beside the record."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of raw values; the columns' names end in their units, by which reports draw them."""

    title: str
    columns: tuple[str, ...]
    """`function`, `calls`, `total_ns`, `peak_bytes`, `share`, ..."""
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one probe found in its own pass."""

    probe: str
    facts: dict[str, Any] = field(default_factory=dict)
    """Single values, named like columns."""
    tables: tuple[Table, ...] = ()
    files: tuple[str, ...] = ()
    """Endings of the files beside the record: its own name without `.json`, a dot, and this."""
