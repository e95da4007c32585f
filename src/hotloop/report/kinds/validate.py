"""What a report says of validations: step by step, by distributions, and towards adoption."""

from collections.abc import Sequence

from hotloop.core.record import Record
from hotloop.core.record.comparison import (
    STEPS,
    AdoptionChecklist,
    BundleFacts,
    Difference,
    Statistical,
    Validation,
    field_words,
)
from hotloop.report import section
from hotloop.report.kinds.compare import ratio_words
from hotloop.report.section import (
    Heading,
    Lines,
    Note,
    Rows,
    Section,
    Sections,
    Span,
    Table,
    Words,
    count,
    facts,
    number_columns,
    origin,
    table,
    text_columns,
)

EQUAL = Span("equal", "good", strong=True)


UNEQUAL = Span("NOT EQUAL", "bad", strong=True)


BROKEN_OFF = Span("broken off", "warn", strong=True)


def validations(records: Sequence[Record]) -> Sections:
    """Return one row a target, then what differs, how it was played, and the facts beside it."""
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
    """Return the first difference, and how to see it again; nothing if there is none."""
    checked = validation_of(record)
    if checked.difference is None:
        return ()
    again = f"hotloop validate --replay {checked.bundle}" if checked.bundle else ""
    title = Heading(words=(Span(record.target.name, strong=True), "  the first difference"), apart=True)
    return title, section.facts(*place(checked.difference), ("again", again))


def place(found: Difference) -> Rows:
    """Yield everything that is known of one place."""
    when = f"{found.step}" + (", after a reset in the middle" if found.after_reset else "")
    yield "step", when if found.step else "0, the first reset"
    yield "env", "all" if found.env is None else str(found.env)
    yield "agent", found.agent or "of no one agent"
    yield "field", f"{found.field}{list(found.index)}"
    yield "reference", found.a
    yield "candidate", found.b
    yield "tick before", found.before or "not known"


def parts(record: Record) -> Table:
    """Return what was played, and in which ways."""
    columns = (
        *text_columns("tape"),
        *number_columns("envs", "threads", "steps of each", "comparisons"),
        *text_columns("compared", whole=True),
    )
    checked = validation_of(record)
    rows = [
        (
            part.tape,
            *(f"{number:,}" for number in (part.num_envs, part.threads, part.steps, part.comparisons)),
            "by digest" if part.by_digest else f"every step, {checked.mode}",
        )
        for part in checked.parts
    ]
    return table(columns, rows)


def replay(bundle: BundleFacts, record: Record, from_state: bool | None) -> Sections:
    """Say whether a bundle's difference came again; `from_state` is whether it did from the last state."""
    checked, kept = validation_of(record), bundle.difference
    seen = checked.difference
    if seen is None:
        gone = Span("does not differ any more", "good", strong=True)
        return (Note(words=(gone, f": it was {kept}")),)
    where = "in the same place" if str(seen) == str(kept) else f"in another place; it was {kept}"
    head = Note(words=(Span("differs again", "bad", strong=True), f", {where}"))
    differs = {None: "", True: "differs too", False: "does not differ"}[from_state]
    return head, section.facts(
        *place(seen),
        ("reference is", bundle.reference.words),
        ("candidate is", bundle.candidate.words),
        ("tape", f"{bundle.tape}, {count(checked.parts[0].steps, 'step')}"),
        ("shrunk from", "; ".join(bundle.story)),
        ("last good state", differs and f"one step from it {differs}"),
    )


FOUND = Span("THEY DIFFER", "bad", strong=True)


NOT_FOUND = Span("no difference larger than stated", "good", strong=True)


UNKNOWN = Span("cannot tell", "warn", strong=True)


OWN = ("return", "length")  # Told in their own unit, too


def statistical(records: Sequence[Record]) -> Sections:
    """Return one part a target: the word, what was found, and what each kind of thing can still differ by."""
    parts = list[Section]()
    for record in records:
        found = record.statistical
        assert found is not None
        word = FOUND if found.differences else UNKNOWN if found.pairs < found.needed else NOT_FOUND
        told = (
            f"{found.compared:,} things compared in {found.pairs:,} pairs of episodes a policy; intervals "
            f"hold for all at once, but in 1 of {found.one_false_in} cases, and what is found has to be "
            f"found again; under {found.margin:g} of a spread it is rounding, and what is rarer than 1 in "
            f"{found.rarest:,} episodes need not have come at all"
        )
        name = Span(record.target.name, strong=True)
        parts += (Note(words=(name, f"  against {found.against}: ", word)), Note(words=(told,)))
        parts += (*differences(found), bounds(found))
    return *parts, section.facts(*origin(records[0]))


def differences(found: Statistical) -> tuple[Section, ...]:
    """Return what differs, as it was seen in fresh pairs; nothing if nothing does."""
    if not found.differences:
        return ()
    columns = (
        *text_columns("policy", "what differs"),
        *number_columns("candidate less reference", "interval", "in spreads"),
    )
    rows = [
        (
            each.policy,
            each.what,
            f"{each.difference:+.4g}",
            f"{each.low:+.4g} to {each.high:+.4g}",
            f"{each.difference / each.spread:+.2g}",
        )
        for each in found.differences
    ]
    return Heading(words=("what differs",), apart=True), table(columns, rows)


def bounds(found: Statistical) -> Section:
    columns = (
        *text_columns("policy", "what"),
        *number_columns("compared", "no difference larger than", "would have been seen from"),
    )
    rows = []
    for group in found.groups:
        largest, seen = f"{group.bound:.2g} spreads", f"{group.seen_from:.2g} spreads"
        if group.name in OWN:
            spread = group.worst.spread
            largest = f"{group.bound * spread:.3g} ({largest})"
            seen = f"{group.seen_from * spread:.3g} ({seen})"
        largest = largest if group.bound else "it differs"
        rows.append((group.policy, group.name, f"{group.compared:,}", largest, seen))
    return table(columns, rows)


def adoption(found: AdoptionChecklist) -> Sections:
    """Return the four steps with what is known of each, and what to run next."""
    title = Heading(words=(Span(found.candidate, strong=True), f"  against {found.reference}"))
    steps = Lines(lines=tuple(step(number, found.step) for number in range(1, len(STEPS) + 1)))
    command = Note(words=Span(f"run  {found.command}", strong=True))
    # How much was compared, by configuration and together.
    rows: list[tuple[Words, ...]] = [
        (each.target, f"{each.runs:,}", f"{each.comparisons:,}", f"{each.mismatches:,}")
        for each in found.configurations
    ]
    rows.append(("together", "", f"{found.comparisons:,}", f"{found.mismatches:,}"))
    columns = (*text_columns("configuration"), *number_columns("runs", "comparisons", "mismatches"))
    timed = facts(("alone", "not timed"), ("end to end", "not timed"))
    if found.outcome is not None:
        timed = facts(
            ("alone", f"{found.part}: {ratio_words(found.alone)} times as fast"),
            ("end to end", f"{ratio_words(found.whole)} times as fast"),
        )
    return title, table(columns, rows), timed, steps, Note(words=found.why), command


def step(number: int, current: int) -> Span:
    """Return one step: done, next, or to come; a last one that is passed over is kept."""
    name = f"{number}. {STEPS[number - 1]}"
    if number == current:
        return Span(f"  next  {name}", strong=True)
    if number == len(STEPS) < current:
        return Span(f"  kept  {name}")
    return Span(f"  done  {name}", "good") if number < current else Span(f"        {name}")
