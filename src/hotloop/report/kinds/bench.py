"""Benches: how fast each target is, and what each rung of a ladder costs beyond the one below."""

from collections.abc import Sequence

from hotloop.core.notices import Code
from hotloop.core.record import Record
from hotloop.report.facts import (
    by_spread,
    cost_line,
    goal_words,
    is_alone,
    measured,
    origin,
    path_line,
    ran_as,
    spread,
)
from hotloop.report.kinds.compare import comparisons, ratio_words
from hotloop.report.kinds.times import breakdown
from hotloop.report.section import (
    Facts,
    Heading,
    Section,
    Sections,
    Span,
    Words,
    facts,
    number_columns,
    table,
    text_columns,
)
from hotloop.report.units import count, percent, speed, speed_interval, took
from hotloop.stats.intervals import FEWEST
from hotloop.stats.ratio import ratio
from hotloop.stats.summary import label


def bench(records: Sequence[Record]) -> Sections:
    """Return one row a target, the facts beside them, then phases and baselines where there are any."""
    if all(is_function(record) for record in records):
        return functions(records)
    alone = all(is_alone(record) for record in records)
    columns = (
        *text_columns("target", "impl"),
        *number_columns("env-steps/s" if alone else "agent-steps/s", "95% interval"),
        *number_columns("spread", *(() if alone else ("env-steps/s",)), wide=True),
    )
    rows = [(record.target.words, ran_as(record), *speeds(record)[: 3 if alone else 4]) for record in records]
    return (
        table(columns, rows),
        facts(*measured(records)),
        *(section for record in records if record.phases for section in phases(record)),
        *(section for record in records for section in comparisons(record.comparisons)),
    )


def is_function(record: Record) -> bool:
    """Return whether a function was measured, whose steps are its calls."""
    return record.target.variant.get("interface") == "function"


def functions(records: Sequence[Record]) -> Sections:
    """Return one row per function, with what a call takes."""
    numbers = number_columns("a call", "95% interval", "calls/s", "spread")
    method = f"{records[0].method.rounds} rounds of each, one after another"
    return (
        table((*text_columns("function"), *numbers), [function_row(record) for record in records]),
        facts(*origin(records[0]), ("method", method)),
        *(section for record in records if record.phases for section in phases(record)),
        *(section for record in records for section in comparisons(record.comparisons)),
    )


def function_row(record: Record) -> tuple[Words, ...]:
    pace = record.metrics.get("env_steps_per_s")
    if pace is None:
        return (record.target.words, "no rounds", "", "", "")
    ends = [took(1e9 / each) for each in reversed(pace.ci95)] if pace.ci95 else []
    around = f"[{', '.join(ends)}]" if ends else ""
    return (
        record.target.words,
        Span(took(1e9 / pace.median), strong=True),
        around,
        speed(pace.median),
        spread(record),
    )


def brief(records: Sequence[Record]) -> str | None:
    """Return one line that names the notices of several functions; None of anything else."""
    if len(records) < 2 or not all(is_function(record) for record in records):
        return None
    held: dict[str, list[str]] = {}
    for record in records:
        for each in record.notices:
            held.setdefault(each.code, []).append(record.target.name.rpartition(":")[2])
    held.pop(Code.FUNCTION, None)
    named = (
        code if len(names) == len(records) else f"{code} ({', '.join(dict.fromkeys(names))})"
        for code, names in held.items()
    )
    return f"! {', '.join(named)}; measure one function alone to read each in full" if held else ""


def speeds(record: Record) -> tuple[Words, ...]:
    """Return the cells of a record's throughput."""
    agent, env = record.metrics.get("agent_steps_per_s"), record.metrics.get("env_steps_per_s")
    if agent is None or env is None:
        return ("no rounds",)
    median = Span(speed(agent.median), strong=True)
    return median, speed_interval(agent.ci95), spread(record), speed(env.median)


def phases(record: Record) -> tuple[Section, ...]:
    """Return the phases that a bench found after its clean rounds, and what the instrument cost."""
    name = Span(record.target.name, strong=True)
    title = Heading(words=(name, "  instrumented passes, after the clean rounds"), apart=True)
    return title, breakdown(record), facts(("instrument", cost_line(record)))


HEADLINE = "env_steps_per_s"
COLUMNS = (
    *text_columns("rung", whole=True),
    *number_columns("env-steps/s", "95% interval"),
    *number_columns("CV", "ns/env-step", "of top", wide=True),
    *number_columns("speed / rung below"),
)


def ladder(records: Sequence[Record]) -> Sections:
    """Return one row a rung, all of one configuration."""
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
