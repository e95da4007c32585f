"""Trends: commits that were measured in turns, each against the first, and where the level changed."""

from collections.abc import Sequence

from hotloop.core.notices import Code
from hotloop.core.record.comparison import Ratio
from hotloop.core.record.metadata import own_commit
from hotloop.core.record.record import ENV_STEPS_PER_S, NOISE, Record
from hotloop.judge.history import Series, histories
from hotloop.report.kinds.compare import ratio_words
from hotloop.report.section import (
    Note,
    Sections,
    Span,
    Words,
    facts,
    number_columns,
    table,
    text_columns,
)
from hotloop.report.units import count, speed
from hotloop.stats.changepoints import Change
from hotloop.stats.intervals import FEWEST
from hotloop.stats.ratio import ratio

SHORT = 8  # Digits of a commit
SUBJECT = 40  # Characters of a subject


def trend(records: Sequence[Record]) -> Sections:
    """The newest against the first, a row a commit, then where the level changed."""
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
    times = ratio_words(against(first, newest))
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
    """One commit: what it is, its speed, and what is new about it."""
    ancestry, metric = record.code.get("ancestry"), record.metrics[ENV_STEPS_PER_S]
    date, subject = (ancestry["committed"][:10], ancestry["subject"]) if ancestry else ("", "")
    subject = subject if len(subject) <= SUBJECT else f"{subject[: SUBJECT - 1]}…"
    marks = [
        *([Span(f"level {change.ratio - 1:+.1%}", "good" if change.ratio > 1 else "bad")] if change else []),
        *([Span("other outputs", "warn")] if is_other(record) else []),
    ]
    told = tuple(part for mark in marks for part in (", ", mark))[1:]
    ratio_cell = "" if record is first else ratio_words(against(first, record))
    return short(record), date, subject, speed(metric.median), ratio_cell, told


def against(first: Record, record: Record) -> Ratio | None:
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
    """A change of level: since which commit, by how much."""
    commit = series.points[change.index].commit[:SHORT]
    return (
        f"since {commit} {change.ratio - 1:+.1%}: {speed(change.before)} before, {speed(change.after)} after "
        f"(p {change.p:.3f})"
    )


def summary(series: Series) -> str:
    """What is read first: the last change of level, or why none can be told."""
    if series.changes:
        return change_words(series, series.changes[-1])
    if series.missing:
        return f"too little history for a change of level: {count(series.missing, 'commit')} more"
    return "no change of level"
