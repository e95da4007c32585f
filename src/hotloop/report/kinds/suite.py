"""A suite: a row an item, and below them what failed."""

from hotloop.core.errors import ExitCode
from hotloop.core.record.record import Ran, Record, SuiteRan
from hotloop.core.record.sweep import Sweep
from hotloop.report.kinds.compare import outcome_words, ratio_words
from hotloop.report.kinds.scale import answer_words
from hotloop.report.section import (
    Lines,
    Note,
    Section,
    Sections,
    Span,
    Words,
    number_columns,
    table,
    text_columns,
)
from hotloop.report.units import count, percent, plain_float, speed, speed_interval

MEANINGS = {
    ExitCode.FINE: Span("fine", "good"),
    ExitCode.UNSTABLE: Span("unstable", "warn"),
    ExitCode.CANNOT_TELL: Span("cannot tell", "warn"),
    ExitCode.REGRESSION: Span("slower", "bad", strong=True),
    ExitCode.MISMATCH: Span("not equal", "bad", strong=True),
}


def suite(ran: SuiteRan) -> Sections:
    """The table of all items, then the failures and what is left to do."""
    rows = [(item.target, item.do, result(item), verdict(item)) for item in ran.items]
    columns = (*text_columns("target", "do"), *number_columns("result"), *text_columns("", whole=True))
    return (Note(words=headline(ran)), table(columns, rows), *failures(ran))


def headline(ran: SuiteRan) -> Words:
    left = ran.asked - len(ran.items)
    words = f"suite {ran.name}: {count(len(ran.items), 'item')}"
    return f"{words}, {left} left: go on with --resume" if left else words


def result(item: Ran) -> Words:
    """What an item found, in one cell."""
    record = item.record
    if record is None:
        return "none"
    if record.comparisons:
        compared = record.comparisons[0]
        return outcome_words(compared.outcome, f", {ratio_words(compared.ratio)} of {item.against}")
    if record.sweep is not None or item.do == "profile":
        return largest(record) if record.sweep is None else growths(record.sweep)
    if record.instructions is not None:
        return f"{plain_float(record.instructions.per_env_step)} instructions/env-step"
    metric = record.metrics.get("agent_steps_per_s")
    if metric is None:
        return "no rounds"
    return f"{speed(metric.median)} {speed_interval(metric.ci95)} agent-steps/s"


def growths(swept: Sweep) -> str:
    """How a sweep's cost grows, as far as that is known."""
    return "; ".join(answer_words(swept)) or count(len(swept.points), "place")


def largest(record: Record) -> str:
    """The part that takes most, of those that have no parts themselves."""
    whole = {phase.path.rpartition("/")[0] for phase in record.phases}
    parts = [phase for phase in record.phases if phase.path not in whole]
    if not parts:
        return "no phases"
    most = max(parts, key=lambda phase: phase.share)
    return f"{most.path} {percent(most.share)}"


def verdict(item: Ran) -> Words:
    again = " (kept)" if item.kept else ""
    if item.record is None:
        return Span("failed", "bad", strong=True)
    meaning = MEANINGS.get(item.code, Span(f"exit {int(item.code)}", "bad"))
    return (meaning, again) if again else meaning


def failures(ran: SuiteRan) -> tuple[Section, ...]:
    """Why items have no record."""
    failed = [item for item in ran.items if item.record is None]
    if not failed:
        return ()
    lines = tuple(
        (Span("failed", "bad", strong=True), f"  {item.target} ({item.do}): {item.refused}")
        for item in failed
    )
    return (Lines(lines=lines),)
