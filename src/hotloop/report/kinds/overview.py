"""Many records in one table: a folder against the first of each target, and commits in turns."""

from collections.abc import Sequence

from hotloop.core.errors import InputError
from hotloop.core.notices import Code
from hotloop.core.record import ENV_STEPS_PER_S, NOISE, Record
from hotloop.core.record.comparison import Comparison, Ratio
from hotloop.core.record.metadata import own_commit
from hotloop.judge.compare import compare_stored, unlike_plays
from hotloop.judge.history import Series, histories
from hotloop.report.facts import commit_words
from hotloop.report.kinds.compare import outcome_words, ratio_words
from hotloop.report.kinds.times import step_shares
from hotloop.report.section import (
    Lines,
    Note,
    Sections,
    Span,
    Words,
    facts,
    number_columns,
    table,
    text_columns,
)
from hotloop.report.units import count, percent, speed, speed_interval
from hotloop.stats.changepoints import Change
from hotloop.stats.intervals import FEWEST
from hotloop.stats.ratio import ratio

OBSERVATIONS = "observations"


def overview(records: Sequence[Record]) -> Sections:
    """Return one row a record, in the order they were made, then what could not be told and why."""
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
    """Return the first of the same target and kind, which a record is held against."""
    alike = (each for each in records if (each.kind, each.target.name) == (record.kind, record.target.name))
    return next(alike)


def title(record: Record) -> str:
    """Return its label; without one when it was made."""
    return record.label or record.created[5:16].replace("T", " ")


def pace(record: Record) -> tuple[str, str]:
    """Return the speed that it found, of the later side where two were compared, and its interval."""
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
    """Return what a comparison came to, or how a record stands to the first of its target."""
    if record.validation and record.validation.mismatches:
        return "", Span("not equal", "bad", strong=True), mismatch(record)
    if record.comparisons and record.kind == "compare":
        found = record.comparisons[-1]
        return ratio_words(found.ratio), outcome_words(found.outcome), reason(found)
    return against(first, record)


def mismatch(record: Record) -> str:
    """Return where two sides were seen to answer differently, or how often."""
    told = [each.difference for each in record.comparisons if each.difference]
    checked = record.validation
    assert checked is not None
    return told[0] if told else f"{checked.mismatches} of {checked.comparisons} compared outputs differ"


def reason(found: Comparison) -> str:
    return found.why if found.outcome == "cannot tell" else ""


def against(first: Record, record: Record) -> tuple[str, Span, str]:
    """Return the ratio to the first record of its target, the outcome, and the reason where none is clear."""
    if record is first:
        return "", Span("first"), ""
    try:
        comparison = compare_stored(first, record)
    except InputError as error:
        return "", Span("not compared", "warn"), str(error)
    return ratio_words(comparison.ratio), outcome_words(comparison.outcome), reason(comparison)


def observations(record: Record) -> str:
    """Return the share of the step that writing observations took; empty if no phases are known."""
    share = step_shares(record).get(OBSERVATIONS) if record.phases else None
    return "" if share is None else percent(share)


def commit(record: Record) -> str:
    told, dirty = own_commit(record.code)
    return commit_words(told, dirty=dirty)


SHORT = 8  # Digits of a commit
SUBJECT = 40  # Characters of a subject


def trend(records: Sequence[Record]) -> Sections:
    """Return the newest against the first, a row a commit, then where the level changed."""
    series = next(iter(histories(records)), None)
    changed = {series.points[each.index].commit: each for each in series.changes} if series else {}
    columns = (
        *text_columns("commit", "date", whole=True),
        *text_columns("subject"),
        *number_columns("env-steps/s", "against the first"),
        *text_columns("", whole=True),
    )
    rows = [row(records[0], each, changed.get(own_commit(each.code)[0])) for each in records]
    verdict = "interrupted: no change of level can be told" if series is None else summary(series)
    told = facts(("level", verdict), ("noise", noise_words(records[0])))
    return Note(words=headline(records)), table(columns, rows), told


def headline(records: Sequence[Record]) -> Words:
    """How many times as fast the newest commit is as the first, and whether it still is the same program."""
    first, newest = records[0], records[-1]
    commits = position(newest) - position(first)
    times = ratio_words(times_as_fast(first, newest))
    words = (
        f"{newest.target.words} at {short(newest)}: {times} times as fast as at {short(first)}, "
        f"{count(commits, 'commit')} before"
    )
    others = sum(map(is_other, records))
    said = f"; outputs changed at {count(others, 'commit')} between"
    return (words, Span(said, "warn", strong=True)) if others else words


def noise_words(first: Record) -> str:
    """Return how much the first commit differs from a second instance of itself."""
    found = ratio_of(first.values[ENV_STEPS_PER_S], first.values.get(NOISE, ()))
    return f"{short(first)} against itself {ratio_words(found)}" if found else ""


def row(first: Record, record: Record, change: Change | None) -> tuple[Words, ...]:
    """Return one commit: what it is, its speed, and what is new about it."""
    ancestry, metric = record.code.get("ancestry"), record.metrics[ENV_STEPS_PER_S]
    date, subject = (ancestry["committed"][:10], ancestry["subject"]) if ancestry else ("", "")
    subject = subject if len(subject) <= SUBJECT else f"{subject[: SUBJECT - 1]}…"
    marks = [
        *([Span(f"level {change.ratio - 1:+.1%}", "good" if change.ratio > 1 else "bad")] if change else []),
        *([Span("other outputs", "warn")] if is_other(record) else []),
    ]
    told = tuple(part for mark in marks for part in (", ", mark))[1:]
    ratio_cell = "" if record is first else ratio_words(times_as_fast(first, record))
    return short(record), date, subject, speed(metric.median), ratio_cell, told


def times_as_fast(first: Record, record: Record) -> Ratio | None:
    """Return how many times as fast a commit is as the first, by rounds; None if they are too few."""
    return ratio_of(first.values[ENV_STEPS_PER_S], record.values[ENV_STEPS_PER_S])


def ratio_of(first: Sequence[float], other: Sequence[float]) -> Ratio | None:
    """Return how many times as fast another is, from speeds round by round; None if they are too few."""
    if not FEWEST <= len(first) == len(other):
        return None
    return ratio([1e9 / each for each in first], [1e9 / each for each in other])


def short(record: Record) -> str:
    return own_commit(record.code)[0][:SHORT]


def position(record: Record) -> int:
    ancestry = record.code.get("ancestry")
    return ancestry["position"] if ancestry else 0


def is_other(record: Record) -> bool:
    """Return whether a commit showed something else than the one before."""
    return any(said.code == Code.OUTPUTS_CHANGED for said in record.notices)


def change_words(series: Series, change: Change) -> str:
    """Return a change of level: since which commit, by how much."""
    commit = series.points[change.index].commit[:SHORT]
    return (
        f"since {commit} {change.ratio - 1:+.1%}: {speed(change.before)} before, {speed(change.after)} after "
        f"(p {change.p:.3f})"
    )


def summary(series: Series) -> str:
    """Return what is read first: the last change of level, or why none can be told."""
    if series.changes:
        return change_words(series, series.changes[-1])
    if series.missing:
        return f"too little history for a change of level: {count(series.missing, 'commit')} more"
    return "no change of level"
