"""Speeds: how fast each target is, what each rung of a ladder costs, and which of two is faster."""

from collections.abc import Sequence

from hotloop.core.errors import Code
from hotloop.core.record import ENV_STEPS_PER_S, Record
from hotloop.report.kinds.compare import comparisons, program_method, ratio_words, run_measures
from hotloop.report.kinds.times import breakdown
from hotloop.report.section import (
    Heading,
    Rows,
    Section,
    Sections,
    Span,
    Words,
    by_spread,
    cost_line,
    count,
    facts,
    goal_words,
    is_alone,
    measured,
    number_columns,
    origin,
    path_line,
    percent,
    ran_as,
    speed,
    speed_interval,
    spread,
    table,
    text_columns,
    took,
)
from hotloop.stats.summary import FEWEST, label, ratio, summarise


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
    rows = list[tuple[Words, ...]]()
    for record in records:
        agent, env = record.metrics.get("agent_steps_per_s"), record.metrics.get(ENV_STEPS_PER_S)
        cells: tuple[Words, ...] = ("no rounds",)
        if agent is not None and env is not None:
            median = Span(speed(agent.median), strong=True)
            cells = (median, speed_interval(agent.ci95), spread(record), speed(env.median))
        rows.append((record.target.words, ran_as(record), *cells[: 3 if alone else 4]))
    return table(columns, rows), facts(*measured(records)), *parts(records)


def is_function(record: Record) -> bool:
    """Return whether a function was measured, whose steps are its calls."""
    return record.target.variant.get("interface") == "function"


def functions(records: Sequence[Record]) -> Sections:
    """Return one row per function, with what a call takes."""
    numbers = number_columns("a call", "95% interval", "calls/s", "spread")
    method = f"{records[0].method.rounds} rounds of each, one after another"
    rows = list[tuple[Words, ...]]()
    for record in records:
        pace = record.metrics.get(ENV_STEPS_PER_S)
        cells: tuple[Words, ...] = ("no rounds", "", "", "")
        if pace is not None:
            ends = [took(1e9 / each) for each in reversed(pace.ci95)] if pace.ci95 else []
            around = f"[{', '.join(ends)}]" if ends else ""
            call = Span(took(1e9 / pace.median), strong=True)
            cells = (call, around, speed(pace.median), spread(record))
        rows.append((record.target.words, *cells))
    return (
        table((*text_columns("function"), *numbers), rows),
        facts(*origin(records[0]), ("method", method)),
        *parts(records),
    )


def parts(records: Sequence[Record]) -> Sections:
    """Return the phases that benches found after their clean rounds, then how they stand to baselines."""
    found: list[Section] = []
    for record in records:
        if record.phases:
            name = Span(record.target.name, strong=True)
            words = (name, "  instrumented passes, after the clean rounds")
            found += [Heading(words=words, apart=True), breakdown(record)]
            found.append(facts(("instrument", cost_line(record))))
    return *found, *(section for record in records for section in comparisons(record.comparisons))


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
    method = top.method
    turns = f"{count(method.rounds, 'round')} of {method.iterations:,} env-steps a rung"
    about: list[tuple[str, Words]] = [
        ("method", f"{turns}, after {method.warmup:,} of warm-up; {method.order}; every probe off"),
        *origin(top),
    ]
    for record in records:
        about.append(("path", f"{mode_of(record)}: {path_line(record)}"))
        if record.goal:
            about.append(("target", goal_words(record, record.goal, f"{mode_of(record)}: ")))
    return (
        title,
        table(COLUMNS, [rung_row(record, below, top) for below, record in rungs]),
        facts(*about),
        *(section for record in records for section in comparisons(record.comparisons)),
    )


def mode_of(record: Record) -> str:
    return record.run_id.rpartition("-")[2]


def rung_row(record: Record, below: Record | None, top: Record) -> tuple[Words, ...]:
    metric, whole = record.metrics.get(ENV_STEPS_PER_S), top.metrics.get(ENV_STEPS_PER_S)
    if metric is None or whole is None:
        return mode_of(record), "no rounds"
    # Its speed over that of the rung below, round by round; empty where that cannot be said.
    mine, beyond = record.values[ENV_STEPS_PER_S], ""
    if below is not None and len(mine) >= FEWEST:
        beyond = ratio_words(ratio(mine, below.values[ENV_STEPS_PER_S]))
    return (
        mode_of(record),
        Span(speed(metric.median), strong=True),
        speed_interval(metric.ci95),
        "one round" if metric.cv is None else by_spread(percent(metric.cv), label(metric.cv)),
        f"{1e9 / metric.median:,.0f}",
        percent(whole.median / metric.median),
        beyond,
    )


def program_bench(record: Record) -> Sections:
    """Return the command, what it is judged by, and what a run took."""
    rows = list[tuple[Words, ...]]()
    for name, heading, written in run_measures(record):
        metric = record.metrics.get(name)
        if metric is not None:
            around = "no interval"
            if metric.ci95:
                around = f"[{written(metric.ci95[0])}, {written(metric.ci95[1])}]"
            cv, varied = summarise(record.values[name]).cv, Span("one run")
            if cv is not None:
                varied = by_spread(f"{percent(cv)} {label(cv)}", label(cv))
            rows.append((heading, Span(written(metric.median), strong=True), around, varied))
    columns = (*text_columns("of a run"), *number_columns("median", "95% interval", "spread"))
    return (
        facts(("program", Span(record.target.name, strong=True))),
        table(columns, rows) if rows else facts(("runs", "no round was finished")),
        facts(*program_facts(record)),
        *comparisons(record.comparisons),
    )


def program_facts(record: Record) -> Rows:
    """Yield what the numbers rest on, and how much of a printed metric was cut as warm-up."""
    yield from origin(record)
    yield "method", program_method(record)
    for found in record.findings:
        if found.probe == "metric" and found.tables:
            rows = found.tables[0].rows
            values = sum(len(row[2]) for row in rows if isinstance(row[2], (list, tuple)))
            cut = sum(int(str(row[1])) for row in rows)
            runs = count(len(rows), "run")
            yield "printed", f"{count(values, 'value')} in {runs}, {cut} of them cut as warm-up"
