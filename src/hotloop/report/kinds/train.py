"""Trainings and loops of the user's own: what they came to, their curves, and the tree of their time."""

from collections.abc import Iterator
from dataclasses import replace

from hotloop.core.record import ENV_STEPS_PER_S, Record
from hotloop.core.record.profile import WALL
from hotloop.core.time_tree import TimeTree, tree_text
from hotloop.judge.course import views
from hotloop.report.kinds.times import (
    Cell,
    account_of,
    calls_of,
    draw_account,
    gpus,
    keys,
    of_wall,
    resource_chapters,
)
from hotloop.report.section import (
    CPU,
    Chapter,
    Curve,
    Facts,
    Lines,
    Note,
    Page,
    Section,
    Sections,
    Span,
    count,
    facts,
    number_columns,
    on_core,
    origin,
    path_line,
    percent,
    speed,
    speed_interval,
    table,
    text_columns,
    title,
)

# What a curve is called, and the values it is of.
CURVES = {"return": "return_per_agent", "eval": "eval_return", "agreement": "agreement"}
COLUMNS: dict[str, Cell] = {
    "ms": lambda row, _: f"{row.total_ns / 1e6:,.2f}",
    "of wall": of_wall,
    "calls": calls_of,
}


def train(record: Record) -> Sections:
    """Return what a run came to, and where its time went."""
    whole = account_of(record)
    stages = [(str(each.label), account_of(each)) for each in views(record)]
    trees = [section for name, times in stages if times for section in training_tree(times, name)]
    if whole and not trees:
        trees += training_tree(whole, "all windows")
    return title(record), training_facts(record), *trees


def training_facts(record: Record) -> Facts:
    work = record.work
    updates = f"{count(work.updates, 'update')}, {count(record.method.rounds, 'window')}"
    stages = []
    for each in views(record):
        metric = each.metrics.get(ENV_STEPS_PER_S)
        pace = (
            f", {speed(metric.median)} env-steps/s {speed_interval(metric.ci95)}".rstrip() if metric else ""
        )
        steps = f"{each.work.env_steps:,} env-steps in {count(each.work.updates, 'update')}"
        stages.append((str(each.label), steps + pace))
    curves = ((name, record.values.get(values)) for name, values in CURVES.items())
    # Whose arithmetic the updates were made with.
    kernels = ", ".join(
        f"{name.removeprefix('updates.')} in {count(times, 'update')}"
        for name, times in record.path.counters.items()
        if name.startswith("updates.")
    )
    return facts(
        ("trained", f"{work.env_steps:,} env-steps, {work.agent_steps:,} agent-steps in {updates}"),
        ("speed", Span(speed_line(record), strong=True)),
        *stages,
        *((name, Curve(values=values)) for name, values in curves if values),
        ("validated", validation_line(record)),
        *origin(record),
        ("path", path_line(record)),
        ("kernels", kernels or "none"),
        ("GPU", gpus(record.resources) if record.resources else ""),
    )


def training_tree(times: TimeTree, name: str = "where the time went") -> tuple[Section, ...]:
    """Draw the tree, and under it how it was timed and what is in no part."""
    return draw_account(name, replace(times, calls=0), COLUMNS)


def speed_line(record: Record) -> str:
    """Return counted steps over wall, of the whole run and of its windows."""
    wall_ns, steps = (sum(record.values.get(name, ())) for name in ("wall_ns", "env_steps"))
    if not wall_ns:
        return "no window was finished"
    windows = record.values[ENV_STEPS_PER_S]
    spread = f"windows from {speed(min(windows))} to {speed(max(windows))}"
    return f"{steps * 1e9 / wall_ns:,.0f} env-steps/s ({steps:,.0f} in {wall_ns / 1e9:.2f} s); {spread}"


def validation_line(record: Record) -> str:
    """Return what the twin answered; empty if there was none."""
    checked = record.validation
    if checked is None:
        return ""
    if checked.difference:
        kept = f"; hotloop validate --replay {checked.bundle} shows it again" if checked.bundle else ""
        return f"DIFFERS from {checked.against}: {checked.difference}{kept}"
    seen = f"{checked.comparisons:,} outputs of agents"
    return f"{seen} equal to the twin's, to the byte, with the policy in the loop"


# Metrics of what a loop may count, and what they are called.
SPEEDS = {
    ENV_STEPS_PER_S: "steps/s",
    "updates_per_s": "updates/s",
    "samples_per_s": "samples/s",
}

THREADS = "threads/"


def run_text(record: Record) -> str:
    """Return the whole run in plain lines: what was counted, the tree of one update, and the notices."""
    lines = [f"{record.target.name}: {made_line(record)}"]
    stages = views(record)
    for each in stages or (record,):
        lines += [f"{each.label}: {made_line(each)}"] if stages else []
        lines += [f"  {text}" for _, text in speeds(each)]
        times = account_of(each)
        lines += [tree_text(times, each.work.updates)] if times else []
    lines += [f"! {notice.text}; {notice.remedy}" for notice in record.notices]
    return "\n".join(lines)


def run_page(record: Record) -> Page:
    """Return all that is known of a run."""
    results = [("Made", made_line(record)), *speeds(record)]
    results.append(("Windows", count(record.method.rounds, "window")))
    cost = record.overhead
    if cost and cost.mark_ns is not None:
        words = f"{percent(cost.ratio - 1)} of the time: {cost.mark_ns:,.0f} ns a boundary"
        results.append(("Instrument", words))
    configuration = facts(
        ("Parameters", keys(record.target.params)),
        ("Variant", keys(record.target.variant)),
        *origin(record),
        ("Clock", record.method.clock),
        ("Run", record.run_id),
    )
    notes = (
        "A window is so many updates; speeds are medians over the windows, the tree is of all of them.",
        *(f"{notice.text}: {notice.remedy}." for notice in record.notices),
    )
    stages = []
    for each in views(record):
        about = Note(words=f"{each.label}: {made_line(each)}"), facts(*speeds(each)), *tree(each)
        stages.append(Chapter(title=f"Time of one update: {each.label}", sections=about))
    chapters = (
        Chapter(title="Results", sections=(facts(*results),), summary=True),
        Chapter(title="Time of one update", sections=tree(record)),
        *stages,
        *other_threads(record),
        *resource_chapters(record),
        Chapter(title="Configuration", sections=(configuration,), summary=True),
        Chapter(title="Notes", sections=(Lines(lines=notes),)),
    )
    when = f"{record.created[:16].replace('T', ' ')} UTC"
    return Page(title=f"Run of {record.target.name}", when=when, chapters=chapters)


def made_line(record: Record) -> str:
    work, samples = record.work, record.path.counters.get("samples", 0)
    wall_ns = next((phase.total_ns for phase in record.phases if phase.path == WALL), 0)
    counted = [count(work.updates, "update"), *([f"{work.env_steps:,} env-steps"] if work.env_steps else [])]
    counted += [f"{samples:,} samples"] if samples else []
    partial = ", broken off" if record.partial else ""
    return f"{', '.join(counted)} in {wall_ns / 1e9:.2f} s{partial}"


def speeds(record: Record) -> Iterator[tuple[str, str]]:
    for name, unit in SPEEDS.items():
        metric = record.metrics.get(name)
        if metric:
            yield unit, f"{speed(metric.median)} {unit} {speed_interval(metric.ci95)}".rstrip()


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
    name = "one update" if record.work.updates else "the whole run"
    return draw_account(name, replace(times, calls=0), columns)


def other_threads(record: Record) -> Iterator[Chapter]:
    """Yield what other threads did meanwhile, which is no part of the wall."""
    rows = []
    for phase in record.phases:
        if phase.path.startswith(THREADS):
            ms, calls = f"{phase.total_ns / 1e6:,.2f}", f"{phase.calls:,}"
            rows.append((phase.path.removeprefix(THREADS), ms, on_core(phase.worked), calls))
    if rows:
        columns = (*text_columns("span"), *number_columns("ms", CPU, "calls"))
        yield Chapter(title="Other threads", sections=(table(columns, rows),))
