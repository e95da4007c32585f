"""The ladder: each rung's speed, and what it costs beyond the one below."""

from collections.abc import Sequence

from hotloop.core.record.record import Record
from hotloop.report.facts import by_spread, goal_words, origin, path_line, ran_as
from hotloop.report.kinds.compare import comparisons, ratio_words
from hotloop.report.section import (
    Facts,
    Heading,
    Sections,
    Span,
    Words,
    facts,
    number_columns,
    table,
    text_columns,
)
from hotloop.report.units import count, percent, speed, speed_interval
from hotloop.stats.intervals import FEWEST
from hotloop.stats.ratio import ratio
from hotloop.stats.summary import label

HEADLINE = "env_steps_per_s"
COLUMNS = (
    *text_columns("rung", whole=True),
    *number_columns("env-steps/s", "95% interval"),
    *number_columns("CV", "ns/env-step", "of top", wide=True),
    *number_columns("speed / rung below"),
)


def ladder(records: Sequence[Record]) -> Sections:
    """One row a rung, all of one configuration."""
    first, top = records[0], records[-1]
    envs = "" if first.work.runs else count(first.target.variant.get("num_envs", 1), "env")
    title = Heading(words=(Span(first.target.name, strong=True), "  ", ran_as(first), "  ", envs))
    rungs = zip((None, *records), records, strict=False)
    rows = [cells(record, below, top) for below, record in rungs]
    return (
        title,
        table(COLUMNS, rows),
        about(records),
        *(section for record in records for section in comparisons(record.comparisons)),
    )


def mode_of(record: Record) -> str:
    return record.run_id.rpartition("-")[2]


def cells(record: Record, below: Record | None, top: Record) -> tuple[Words, ...]:
    metric, whole = record.metrics.get(HEADLINE), top.metrics.get(HEADLINE)
    if metric is None or whole is None:
        return mode_of(record), "no rounds"
    return (
        mode_of(record),
        Span(speed(metric.median), strong=True),
        speed_interval(metric.ci95),
        "one round" if metric.cv is None else by_spread(percent(metric.cv), label(metric.cv)),
        f"{1e9 / metric.median:,.0f}",
        percent(whole.median / metric.median),
        beyond(record, below),
    )


def beyond(record: Record, below: Record | None) -> str:
    """This rung's speed over that of the one below, round by round; empty where that cannot be said."""
    mine = record.values[HEADLINE]
    if below is None or len(mine) < FEWEST:
        return ""
    return ratio_words(ratio(mine, below.values[HEADLINE]))


def about(records: Sequence[Record]) -> Facts:
    last = records[-1]
    method = last.method
    turns = f"{count(method.rounds, 'round')} of {method.iterations:,} env-steps a rung"
    rows: list[tuple[str, Words]] = [
        ("method", f"{turns}, after {method.warmup:,} of warm-up; {method.order}; every probe off"),
        *origin(last),
    ]
    for record in records:
        rows.append(("path", f"{mode_of(record)}: {path_line(record)}"))
        if record.goal:
            rows.append(("target", goal_words(record, record.goal, f"{mode_of(record)}: ")))
    return facts(*rows)
