"""Validations: equal or not, what that rests on, and where the first difference is."""

from collections.abc import Sequence

from hotloop.core.record.comparison import Difference, Facts, Part, Validation, field_words
from hotloop.core.record.record import Record
from hotloop.report import section
from hotloop.report.facts import Rows, origin
from hotloop.report.section import (
    Heading,
    Note,
    Section,
    Sections,
    Span,
    Table,
    Words,
    number_columns,
    table,
    text_columns,
)
from hotloop.report.units import count

EQUAL = Span("equal", "good", strong=True)
UNEQUAL = Span("NOT EQUAL", "bad", strong=True)
BROKEN_OFF = Span("broken off", "warn", strong=True)


def validations(records: Sequence[Record]) -> Sections:
    """One row a target, then what differs, how it was played, and the facts beside it."""
    columns = (
        *text_columns("target", "against"),
        *text_columns("", whole=True),
        *number_columns("comparisons", "mismatches", "reference takes"),
    )
    first = records[0]
    return (
        table(columns, [row(record) for record in records]),
        *(part for record in records for part in first_difference(record)),
        *([parts(first)] if len(records) == 1 else []),
        section.facts(("fields", field_words(validation_of(first).fields) or "none"), *origin(first)),
    )


def row(record: Record) -> tuple[Words, ...]:
    checked = validation_of(record)
    word = EQUAL
    if checked.mismatches or record.partial:
        word = UNEQUAL if checked.mismatches else BROKEN_OFF
    elif checked.envs_not_compared:
        word = Span(f"cannot tell: {count(checked.envs_not_compared, 'env')} not compared", "warn")
    ratio = f"{checked.timing_ratio:.3g} times as long" if checked.timing_ratio else "not timed"
    numbers = (f"{checked.comparisons:,}", f"{checked.mismatches:,}", ratio)
    return record.target.name, checked.against or "", word, *numbers


def validation_of(record: Record) -> Validation:
    assert record.validation is not None
    return record.validation


def first_difference(record: Record) -> tuple[Section, ...]:
    """The first difference, and how to see it again; nothing where there is none."""
    checked = validation_of(record)
    if checked.difference is None:
        return ()
    again = f"hotloop validate --replay {checked.bundle}" if checked.bundle else ""
    title = Heading(words=(Span(record.target.name, strong=True), "  the first difference"), apart=True)
    return title, section.facts(*place(checked.difference), ("again", again))


def place(found: Difference) -> Rows:
    """Everything that is known of one place."""
    when = f"{found.step}" + (", after a reset in the middle" if found.after_reset else "")
    yield "step", when if found.step else "0, the first reset"
    yield "env", "all" if found.env is None else str(found.env)
    yield "agent", found.agent or "of no one agent"
    yield "field", f"{found.field}{list(found.index)}"
    yield "reference", found.a
    yield "candidate", found.b
    yield "tick before", found.before or "not known"


def parts(record: Record) -> Table:
    """What was played, and in which ways."""
    columns = (
        *text_columns("tape"),
        *number_columns("envs", "threads", "steps of each", "comparisons"),
        *text_columns("compared", whole=True),
    )
    checked = validation_of(record)
    return table(columns, [part_row(part, checked.mode) for part in checked.parts])


def part_row(part: Part, mode: str) -> tuple[Words, ...]:
    numbers = (f"{part.num_envs:,}", f"{part.threads:,}", f"{part.steps:,}", f"{part.comparisons:,}")
    return part.tape, *numbers, "by digest" if part.by_digest else f"every step, {mode}"


def replay(bundle: Facts, record: Record, from_state: bool | None) -> Sections:
    """Whether a bundle's difference came again; `from_state` says whether it did from the last good state."""
    checked, kept = validation_of(record), bundle.difference
    seen = checked.difference
    if seen is None:
        gone = Span("does not differ any more", "good", strong=True)
        return (Note(words=(gone, f": it was {kept}")),)
    where = "in the same place" if str(seen) == str(kept) else f"in another place; it was {kept}"
    head = Note(words=(Span("differs again", "bad", strong=True), f", {where}"))
    return head, section.facts(*place(seen), *origin_of(bundle, checked), *last_good(from_state))


def origin_of(bundle: Facts, checked: Validation) -> Rows:
    """What a bundle says of both sides and of the way to the difference."""
    yield "reference is", bundle.reference.words
    yield "candidate is", bundle.candidate.words
    yield "tape", f"{bundle.tape}, {count(checked.parts[0].steps, 'step')}"
    yield "shrunk from", "; ".join(bundle.story)


def last_good(from_state: bool | None) -> Rows:
    if from_state is not None:
        yield "last good state", f"one step from it {'differs too' if from_state else 'does not differ'}"
