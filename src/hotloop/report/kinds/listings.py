"""What there is, rather than what was found: worlds, keys, and the state of the machine."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hotloop.report.section import (
    Note,
    Sections,
    Span,
    Table,
    Tone,
    Words,
    facts,
    table,
    text_columns,
)

STATES: dict[str, Tone] = {"ok": "good", "warn": "warn", "bad": "bad"}


def doctor(checks: Iterable[tuple[str, str, str, str]], *, fit: bool) -> Sections:
    """Return one row a check, then whether all of it will do.

    A check has a name, `ok`, `warn` or `bad`, what was seen, and what to do.
    """
    rows = [
        (name, Span(state, STATES[state], strong=state == "bad"), found, remedy)
        for name, state, found, remedy in checks
    ]
    verdict = Span("fit to measure", "good", strong=True)
    unfit = Span("not fit to measure now", "bad", strong=True)
    return table(text_columns("", "", "found", "what to do"), rows), Note(words=verdict if fit else unfit)


def worlds(known: Mapping[str, Mapping[str, Any]]) -> Sections:
    """One line a preset, each world's summary beside its default; a world is what `--json` says of it."""
    rows = [
        (target, spelled(changes), world["summary"] if target == world["default"] else "")
        for world in known.values()
        for target, changes in world["presets"].items()
    ]
    return (table(text_columns("target", "changes", "what it is"), rows),)


def world(name: str, known: Mapping[str, Any], columns: Mapping[str, str]) -> Sections:
    """Return a world's presets and phases, its parameters, then those of any batch."""
    about: list[tuple[str, Words]] = [
        (name, known["summary"]),
        *((target, spelled(changes) or "the defaults below") for target, changes in known["presets"].items()),
        ("phases", ", ".join(known["phases"])),
        ("players", ", ".join(known["players"])),
    ]
    groups = [known["parameters"], known["batch"]]
    rows = tuple(tuple(str(info[fact]) for fact in columns) for group in groups for info in group)
    heads = text_columns(*columns.values())
    return facts(*about), Table(columns=heads, rows=rows, ends=(len(groups[0]) - 1,))


def keys(rows: Sequence[tuple[str, str, str]]) -> Sections:
    """Return every key, its default and its help."""
    return (table(text_columns("key", "default", "what it is for"), rows),)


def spelled(changes: Mapping[str, object]) -> str:
    """Return a preset's changes as they would be typed."""
    return " ".join(f"{key}={value}" for key, value in changes.items())
