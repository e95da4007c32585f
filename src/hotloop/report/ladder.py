"""The ladder drawn for a terminal: each rung's speed, and what it costs beyond the one below."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from hotloop.core.record import Record
from hotloop.report.comparisons import draw_comparisons, ratio_words
from hotloop.report.facts import code_line, goal_line, machine_line, path_line
from hotloop.report.terminal import SPREAD_STYLES, fact_table, plain_table, ran_as
from hotloop.report.units import count, percent, speed, speed_interval
from hotloop.stats.intervals import FEWEST
from hotloop.stats.ratio import ratio
from hotloop.stats.summary import label

HEADLINE = "env_steps_per_s"


def draw_ladder(records: Sequence[Record]) -> RenderableType:
    """One row a rung, all of one configuration."""
    first, top = records[0], records[-1]
    envs = count(first.target.variant["num_envs"], "env")
    title = Text.assemble((first.target.name, "bold"), "  ", ran_as(first), "  ", envs)
    table = plain_table()
    table.add_column("rung", no_wrap=True)
    for heading in ("env-steps/s", "95% interval", "CV", "ns/env-step", "of top", "speed / rung below"):
        table.add_column(heading, justify="right", no_wrap=True)
    for below, record in zip((None, *records), records, strict=False):
        table.add_row(*cells(record, below, top))
    return Group(title, table, facts(records), *compared(records))


def cells(record: Record, below: Record | None, top: Record) -> Sequence[RenderableType]:
    mode = record.run_id.rpartition("-")[2]
    metric, whole = record.metrics.get(HEADLINE), top.metrics.get(HEADLINE)
    if metric is None or whole is None:
        return mode, "no rounds"
    return (
        mode,
        Text(speed(metric.median), "bold"),
        speed_interval(metric.ci95),
        "one round" if metric.cv is None else Text(percent(metric.cv), SPREAD_STYLES[label(metric.cv)]),
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


def facts(records: Sequence[Record]) -> RenderableType:
    last = records[-1]
    method, table = last.method, fact_table()
    turns = f"{count(method.rounds, 'round')} of {method.iterations:,} env-steps a rung"
    table.add_row("method", f"{turns}, after {method.warmup:,} of warm-up; {method.order}; every probe off")
    table.add_row("machine", machine_line(last.machine))
    table.add_row("commit", code_line(last.code))
    for record in records:
        mode = record.run_id.rpartition("-")[2]
        table.add_row("path", f"{mode}: {path_line(record)}")
        if record.goal:
            style = "" if record.goal.met else "bold red"
            table.add_row("target", Text(f"{mode}: {goal_line(record, record.goal)}", style))
    return table


def compared(records: Sequence[Record]) -> list[RenderableType]:
    return [draw_comparisons(record.comparisons) for record in records if record.comparisons]
