"""Where a candidate stands on its way to becoming the default."""

from hotloop.core.record.comparison import STEPS, Adoption
from hotloop.report.kinds.compare import ratio_words
from hotloop.report.section import (
    Facts,
    Heading,
    Lines,
    Note,
    Sections,
    Span,
    Table,
    Words,
    facts,
    number_columns,
    table,
    text_columns,
)


def adoption(found: Adoption) -> Sections:
    """The four steps with what is known of each, and what to run next."""
    title = Heading(words=(Span(found.candidate, strong=True), f"  against {found.reference}"))
    steps = Lines(lines=tuple(step(number, found.step) for number in range(1, len(STEPS) + 1)))
    command = Note(words=Span(f"run  {found.command}", strong=True))
    return title, compared(found), timed(found), steps, Note(words=found.why), command


def compared(found: Adoption) -> Table:
    """How much was compared, by configuration and together."""
    rows: list[tuple[Words, ...]] = [
        (each.target, f"{each.runs:,}", f"{each.comparisons:,}", f"{each.mismatches:,}")
        for each in found.configurations
    ]
    rows.append(("together", "", f"{found.comparisons:,}", f"{found.mismatches:,}"))
    columns = (*text_columns("configuration"), *number_columns("runs", "comparisons", "mismatches"))
    return table(columns, rows)


def timed(found: Adoption) -> Facts:
    """What was replaced by itself, and the whole."""
    if found.outcome is None:
        return facts(("alone", "not timed"), ("end to end", "not timed"))
    return facts(
        ("alone", f"{found.part}: {ratio_words(found.alone)} times as fast"),
        ("end to end", f"{ratio_words(found.whole)} times as fast"),
    )


def step(number: int, current: int) -> Span:
    """One step: done, next, or to come; a last one that is passed over is kept."""
    name = f"{number}. {STEPS[number - 1]}"
    if number == current:
        return Span(f"  next  {name}", strong=True)
    if number == len(STEPS) < current:
        return Span(f"  kept  {name}")
    return Span(f"  done  {name}", "good") if number < current else Span(f"        {name}")
