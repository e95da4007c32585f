"""All records of a folder as one table, each against the first."""

from collections.abc import Sequence

from hotloop.core.errors import InputError
from hotloop.core.record import Record, own_commit
from hotloop.judge.compare import versus
from hotloop.report.sections.breakdown import shares
from hotloop.report.sections.compare import outcome_words, ratio_words
from hotloop.report.sections.facts import commit_words
from hotloop.report.sections.section import Lines, Sections, Span, Words, number_columns, table, text_columns
from hotloop.report.units import percent, speed, speed_interval

OBSERVATIONS = "observations"


def overview(records: Sequence[Record]) -> Sections:
    """One row a record, in the order they were made, then what could not be told and why."""
    columns = (
        *text_columns("label"),
        *number_columns("agent-steps/s", "against the first"),
        *text_columns("outcome", whole=True),
        *number_columns(OBSERVATIONS, "commit", wide=True),
    )
    rows = list[tuple[Words, ...]]()
    reasons = dict[str, str]()
    for record in records:
        ratio, outcome, why = against(records[0], record)
        reasons.setdefault(why, title(record))
        rows.append((title(record), pace(record), ratio, outcome, observations(record), commit(record)))
    told = [Span(f"{who}: {why}", "dim") for why, who in reasons.items() if why]
    return table(columns, rows), Lines(lines=tuple(told))


def title(record: Record) -> str:
    return record.label or record.run_id


def pace(record: Record) -> str:
    metric = record.metrics.get("agent_steps_per_s")
    return f"{speed(metric.median)} {speed_interval(metric.ci95)}" if metric else "no rounds"


def against(first: Record, record: Record) -> tuple[str, Span, str]:
    """The ratio to the first record, the outcome, and the reason where there is no clear one."""
    if record is first:
        return "", Span("first"), ""
    try:
        comparison = versus(first, record)
    except InputError as error:
        return "", Span("not compared", "warn"), str(error)
    why = comparison.why if comparison.outcome == "cannot tell" else ""
    return ratio_words(comparison.ratio), outcome_words(comparison.outcome), why


def observations(record: Record) -> str:
    """The share of the step that writing observations took; empty where no phases are known."""
    share = shares(record).get(OBSERVATIONS) if record.phases else None
    return "" if share is None else percent(share)


def commit(record: Record) -> str:
    told, dirty = own_commit(record.code)
    return commit_words(told, dirty=dirty)
