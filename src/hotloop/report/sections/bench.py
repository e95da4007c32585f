"""Benches: how fast each target is, and what that rests on."""

from collections.abc import Sequence

from hotloop.core.record import Record
from hotloop.report.sections.breakdown import breakdown
from hotloop.report.sections.compare import comparisons
from hotloop.report.sections.facts import cost_line, is_alone, measured, ran_as, spread
from hotloop.report.sections.section import (
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
from hotloop.report.units import speed, speed_interval


def bench(records: Sequence[Record]) -> Sections:
    """One row a target, the facts beside them, then phases and baselines where there are any."""
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


def speeds(record: Record) -> tuple[Words, ...]:
    """The cells of a record's throughput."""
    agent, env = record.metrics.get("agent_steps_per_s"), record.metrics.get("env_steps_per_s")
    if agent is None or env is None:
        return ("no rounds",)
    median = Span(speed(agent.median), strong=True)
    return median, speed_interval(agent.ci95), spread(record), speed(env.median)


def phases(record: Record) -> tuple[Section, ...]:
    """The phases that a bench found after its clean rounds, and what the instrument cost."""
    name = Span(record.target.name, strong=True)
    title = Heading(words=(name, "  instrumented passes, after the clean rounds"), apart=True)
    return title, breakdown(record), facts(("instrument", cost_line(record)))
