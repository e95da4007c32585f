"""A loop of somebody's own: what it came to, where the time of one update went, and what it used."""

from collections.abc import Iterator
from dataclasses import replace

from hotloop.core.record import Record
from hotloop.core.record.profile import WALL
from hotloop.core.time_tree import tree_text
from hotloop.judge.course import views
from hotloop.report.facts import Rows, origin
from hotloop.report.kinds.findings import resources
from hotloop.report.kinds.profile import keys
from hotloop.report.kinds.times import Cell, account_of, calls_of, draw_account, of_wall
from hotloop.report.section import (
    Chapter,
    Lines,
    Note,
    Page,
    Section,
    Sections,
    facts,
    number_columns,
    table,
    text_columns,
)
from hotloop.report.units import CPU, count, on_core, percent, speed, speed_interval

# Metrics of what a loop may count, and what they are called.
SPEEDS = {
    "env_steps_per_s": "steps/s",
    "updates_per_s": "updates/s",
    "samples_per_s": "samples/s",
}

THREADS = "threads/"


def run_text(record: Record) -> str:
    """The whole run in plain lines: what was counted, the tree of one update, and what to know of it."""
    lines = [f"{record.target.name}: {made_line(record)}"]
    stages = views(record)
    for each in stages or (record,):
        lines += [stage_line(each)] if stages else []
        lines += [f"  {text}" for _, text in speeds(each)]
        times = account_of(each)
        lines += [tree_text(times, each.work.updates)] if times else []
    lines += [f"! {notice.text}; {notice.remedy}" for notice in record.notices]
    return "\n".join(lines)


def run_page(record: Record) -> Page:
    """Return all that is known of a run."""
    when = f"{record.created[:16].replace('T', ' ')} UTC"
    chapters = (
        Chapter(title="Results", sections=(facts(*results(record)),), summary=True),
        Chapter(title="Time of one update", sections=tree(record)),
        *(
            Chapter(
                title=f"Time of one update: {each.label}",
                sections=(Note(words=stage_line(each)), facts(*speeds(each)), *tree(each)),
            )
            for each in views(record)
        ),
        *others(record),
        *used(record),
        Chapter(title="Configuration", sections=(facts(*configuration(record)),), summary=True),
        Chapter(title="Notes", sections=(Lines(lines=tuple(notes(record))),)),
    )
    return Page(title=f"Run of {record.target.name}", when=when, chapters=chapters)


def stage_line(stage: Record) -> str:
    """Return what one phase of a run came to."""
    return f"{stage.label}: {made_line(stage)}"


def made_line(record: Record) -> str:
    work, samples = record.work, record.path.counters.get("samples", 0)
    wall_ns = next((phase.total_ns for phase in record.phases if phase.path == WALL), 0)
    counted = [count(work.updates, "update"), *([f"{work.env_steps:,} env-steps"] if work.env_steps else [])]
    counted += [f"{samples:,} samples"] if samples else []
    partial = ", broken off" if record.partial else ""
    return f"{', '.join(counted)} in {wall_ns / 1e9:.2f} s{partial}"


def speeds(record: Record) -> Rows:
    for name, unit in SPEEDS.items():
        metric = record.metrics.get(name)
        if metric:
            yield unit, f"{speed(metric.median)} {unit} {speed_interval(metric.ci95)}".rstrip()


def results(record: Record) -> Rows:
    yield "Made", made_line(record)
    yield from speeds(record)
    yield "Windows", count(record.method.rounds, "window")
    cost = record.overhead
    if cost and cost.mark_ns is not None:
        yield "Instrument", f"{percent(cost.ratio - 1)} of the time: {cost.mark_ns:,.0f} ns a boundary"


def tree(record: Record) -> Sections:
    """Draw the tree of one update; of the whole run if no update was counted."""
    times = account_of(record)
    if times is None:
        return (Note(words="No time was accounted for."),)
    turns, is_clocked = max(record.work.updates, 1), any(row.on_core is not None for row in times.walk())
    columns: dict[str, Cell] = {
        "ms": lambda row, _: f"{row.total_ns / 1e6 / turns:,.3f}",
        "of wall": of_wall,
        **({CPU: lambda row, _: on_core(row.on_core)} if is_clocked else {}),
        "calls in all": calls_of,
    }
    title = "one update" if record.work.updates else "the whole run"
    return draw_account(title, replace(times, calls=0), columns)


def others(record: Record) -> Iterator[Chapter]:
    """Yield what other threads did meanwhile, which is no part of the wall."""
    rows = [
        (
            phase.path.removeprefix(THREADS),
            f"{phase.total_ns / 1e6:,.2f}",
            on_core(phase.worked),
            f"{phase.calls:,}",
        )
        for phase in record.phases
        if phase.path.startswith(THREADS)
    ]
    if rows:
        columns = (*text_columns("span"), *number_columns("ms", CPU, "calls"))
        section: Section = table(columns, rows)
        yield Chapter(title="Other threads", sections=(section,))


def used(record: Record) -> Iterator[Chapter]:
    if record.resources:
        rows = resources(record.resources, record)
        yield Chapter(title="Resources", sections=(facts(*rows),), summary=True)


def configuration(record: Record) -> Rows:
    yield "Parameters", keys(record.target.params)
    yield "Variant", keys(record.target.variant)
    yield from origin(record)
    yield "Clock", record.method.clock
    yield "Run", record.run_id


def notes(record: Record) -> Iterator[str]:
    yield "A window is so many updates; speeds are medians over the windows, the tree is of all of them."
    for notice in record.notices:
        yield f"{notice.text}: {notice.remedy}."
