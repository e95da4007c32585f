"""What a reader must know to trust a result."""

from collections.abc import Sequence

from hotloop.core.notices import Code, Notice, notice
from hotloop.core.record.record import Record
from hotloop.report.section import Lines, Sections, Span, Words


def notices(records: Sequence[Record]) -> Sections:
    """Each notice once, with the targets it holds for where it does not hold for all."""
    holds: dict[Notice, list[str]] = {}
    for record in records:
        for each in record.notices:
            holds.setdefault(each, []).append(record.target.name)
    lines = [
        line(each, "" if len(targets) == len(records) else f"{', '.join(targets)}: ")
        for each, targets in holds.items()
    ]
    return (Lines(lines=tuple(lines)),)


def left_out(reasons: Sequence[str]) -> Sections:
    """One notice a file that is no record."""
    return (Lines(lines=tuple(line(notice(Code.LEFT_OUT, why=why)) for why in reasons)),)


def line(each: Notice, who: str = "") -> Words:
    return Span("! ", "warn"), who, each.text, Span(f"; {each.remedy}", "dim")
