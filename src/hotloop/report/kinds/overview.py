"""All records of a folder as one table, each against the first of its target."""

from collections.abc import Sequence

from hotloop.core.errors import InputError
from hotloop.core.record.comparison import Comparison
from hotloop.core.record.metadata import own_commit
from hotloop.core.record.record import Record
from hotloop.judge.compare import compare_stored, unlike_plays
from hotloop.report.facts import commit_words
from hotloop.report.kinds.breakdown import shares
from hotloop.report.kinds.compare import outcome_words, ratio_words
from hotloop.report.section import Lines, Sections, Span, Words, number_columns, table, text_columns
from hotloop.report.units import percent, speed, speed_interval

OBSERVATIONS = "observations"


def overview(records: Sequence[Record]) -> Sections:
    """One row a record, in the order they were made, then what could not be told and why."""
    parts = [observations(record) for record in records]
    commits = [commit(record) for record in records]
    extra = {OBSERVATIONS: parts if any(parts) else (), "commit": commits if len({*commits}) > 1 else ()}
    shown = {name: cells for name, cells in extra.items() if cells}
    columns = (
        *text_columns("record"),
        *number_columns("speed"),
        *number_columns("95% interval", wide=True),
        *number_columns("against the first"),
        *text_columns("outcome", whole=True),
        *number_columns(*shown, wide=True),
    )
    rows = list[tuple[Words, ...]]()
    reasons = dict[str, str]()
    for record, *more in zip(records, *shown.values(), strict=True):
        ratio, outcome, why = standing(first_of(records, record), record)
        reasons.setdefault(why, f"{title(record)}, {record.target.words}")
        rows.append((f"{title(record)} {record.target.words}", *pace(record), ratio, outcome, *more))
    told = [Span(f"{who}: {why}", "dim") for why, who in reasons.items() if why]
    told += [
        Span(f"{each.kind} {title(each)}, {each.target.words}: {unlike_words(first, steps)}", "warn")
        for first, each, steps in unlike_plays(records)
    ]
    same = [Span(f"all at commit {commits[0]}", "dim")] if commits and "commit" not in shown else []
    return table(columns, rows), Lines(lines=(*told, *same))


def unlike_words(first: Record, steps: int) -> str:
    """Say that a short play showed something else than that of an earlier record."""
    return f"within {steps} steps of its reset it showed something else than in {first.kind} {title(first)}"


def first_of(records: Sequence[Record], record: Record) -> Record:
    """The first of the same target and kind, which a record is held against."""
    alike = (each for each in records if (each.kind, each.target.name) == (record.kind, record.target.name))
    return next(alike)


def title(record: Record) -> str:
    """Its label; without one when it was made."""
    return record.label or record.created[5:16].replace("T", " ")


def pace(record: Record) -> tuple[str, str]:
    """The speed that it found, of the later side where two were compared, and its interval."""
    if record.comparisons and record.kind == "compare":
        metric = record.metrics.get(f"b.{record.method.ns_per_unit}")
        return (
            (f"{speed(1e9 / metric.median)} {record.method.unit}s/s", "of B") if metric else ("not timed", "")
        )
    metric = record.metrics.get(record.method.headline)
    if metric is None:
        return "no rounds" if record.partial or record.method.rounds else "not timed", ""
    unit = record.method.headline.removesuffix("_per_s").replace("_", "-")
    per = f"{unit}/s" if unit != record.method.headline else unit
    return f"{speed(metric.median)} {per}", speed_interval(metric.ci95)


def standing(first: Record, record: Record) -> tuple[str, Span, str]:
    """What a comparison came to, or how a record stands to the first of its target."""
    if record.validation and record.validation.mismatches:
        return "", Span("not equal", "bad", strong=True), mismatch(record)
    if record.comparisons and record.kind == "compare":
        found = record.comparisons[-1]
        return ratio_words(found.ratio), outcome_words(found.outcome), reason(found)
    return against(first, record)


def mismatch(record: Record) -> str:
    """Where two sides were seen to answer differently, or how often."""
    told = [each.difference for each in record.comparisons if each.difference]
    checked = record.validation
    assert checked is not None
    return told[0] if told else f"{checked.mismatches} of {checked.comparisons} compared outputs differ"


def reason(found: Comparison) -> str:
    return found.why if found.outcome == "cannot tell" else ""


def against(first: Record, record: Record) -> tuple[str, Span, str]:
    """The ratio to the first record of its target, the outcome, and the reason where none is clear."""
    if record is first:
        return "", Span("first"), ""
    try:
        comparison = compare_stored(first, record)
    except InputError as error:
        return "", Span("not compared", "warn"), str(error)
    return ratio_words(comparison.ratio), outcome_words(comparison.outcome), reason(comparison)


def observations(record: Record) -> str:
    """The share of the step that writing observations took; empty where no phases are known."""
    share = shares(record).get(OBSERVATIONS) if record.phases else None
    return "" if share is None else percent(share)


def commit(record: Record) -> str:
    told, dirty = own_commit(record.code)
    return commit_words(told, dirty=dirty)
