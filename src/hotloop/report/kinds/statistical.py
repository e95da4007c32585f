"""Validations by distributions: how large a difference can still be, or which ones there are."""

from collections.abc import Sequence

from hotloop.core.record.comparison import Contrast, Group, Statistical
from hotloop.core.record.record import Record
from hotloop.report import section
from hotloop.report.facts import origin
from hotloop.report.section import (
    Heading,
    Note,
    Section,
    Sections,
    Span,
    Words,
    number_columns,
    table,
    text_columns,
)

FOUND = Span("THEY DIFFER", "bad", strong=True)
NOT_FOUND = Span("no difference larger than stated", "good", strong=True)
UNKNOWN = Span("cannot tell", "warn", strong=True)

OWN = ("return", "length")  # Told in their own unit, too


def statistical(records: Sequence[Record]) -> Sections:
    """One part a target: the word, what was found, and what each kind of thing can still differ by."""
    parts = [part for record in records for part in one(record)]
    return *parts, section.facts(*origin(records[0]))


def one(record: Record) -> tuple[Section, ...]:
    found = statistical_of(record)
    word = FOUND if found.differences else UNKNOWN if found.pairs < found.needed else NOT_FOUND
    head = Note(words=(Span(record.target.name, strong=True), f"  against {found.against}: ", word))
    told = (
        f"{found.compared:,} things compared in {found.pairs:,} pairs of episodes a policy; intervals hold "
        f"for all at once, but in 1 of {found.one_false_in} cases, and what is found has to be found again; "
        f"under {found.margin:g} of a spread it is rounding, and what is rarer than 1 in "
        f"{found.rarest:,} episodes need not have come at all"
    )
    return head, Note(words=(told,)), *differences(found), bounds(found)


def statistical_of(record: Record) -> Statistical:
    assert record.statistical is not None
    return record.statistical


def differences(found: Statistical) -> tuple[Section, ...]:
    """What differs, as it was seen in fresh pairs; nothing where nothing does."""
    if not found.differences:
        return ()
    columns = (
        *text_columns("policy", "what differs"),
        *number_columns("candidate less reference", "interval", "in spreads"),
    )
    title = Heading(words=("what differs",), apart=True)
    return title, table(columns, [difference_row(each) for each in found.differences])


def difference_row(found: Contrast) -> tuple[Words, ...]:
    between = f"{found.low:+.4g} to {found.high:+.4g}"
    return (
        found.policy,
        found.what,
        f"{found.difference:+.4g}",
        between,
        f"{found.difference / found.spread:+.2g}",
    )


def bounds(found: Statistical) -> Section:
    columns = (
        *text_columns("policy", "what"),
        *number_columns("compared", "no difference larger than", "would have been seen from"),
    )
    return table(columns, [bound_row(group) for group in found.groups])


def bound_row(group: Group) -> tuple[Words, ...]:
    largest, seen = f"{group.bound:.2g} spreads", f"{group.seen_from:.2g} spreads"
    if group.name in OWN:
        spread = group.worst.spread
        largest = f"{group.bound * spread:.3g} ({largest})"
        seen = f"{group.seen_from * spread:.3g} ({seen})"
    return group.policy, group.name, f"{group.compared:,}", largest if group.bound else "it differs", seen
