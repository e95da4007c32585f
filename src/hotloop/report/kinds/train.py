"""A training run: what it came to, its curves, and the tree of its time."""

from dataclasses import replace

from hotloop.core.record import Record
from hotloop.core.record.comparison import Validation
from hotloop.core.time_tree import TimeTree
from hotloop.judge.course import views
from hotloop.report.facts import Rows, origin, path_line, title
from hotloop.report.kinds.findings import gpus
from hotloop.report.kinds.times import Cell, account_of, calls_of, draw_account, of_wall
from hotloop.report.section import Curve, Facts, Section, Sections, Span, facts
from hotloop.report.units import count, speed, speed_interval

# What a curve is called, and the values it is of.
CURVES = {"return": "return_per_agent", "eval": "eval_return", "agreement": "agreement"}
COLUMNS: dict[str, Cell] = {
    "ms": lambda row, _: f"{row.total_ns / 1e6:,.2f}",
    "of wall": of_wall,
    "calls": calls_of,
}


def train(record: Record) -> Sections:
    """Return what a run came to, and where its time went."""
    times = account_of(record)
    stages = [(str(each.label), account_of(each)) for each in views(record)]
    trees = [section for name, part in stages if part for section in tree(part, name)]
    return title(record), about(record), *(trees or (tree(times, "all windows") if times else ()))


def about(record: Record) -> Facts:
    known = ((name, record.values.get(values)) for name, values in CURVES.items())
    return facts(
        ("trained", trained_line(record)),
        ("speed", Span(speed_line(record), strong=True)),
        *((str(each.label), stage_line(each)) for each in views(record)),
        *((name, Curve(values=values)) for name, values in known if values),
        *checked(record),
        *origin(record),
        ("path", path_line(record)),
        ("kernels", kernels_line(record)),
        *on_gpu(record),
    )


def on_gpu(record: Record) -> Rows:
    """Yield how busy the GPU was, where the network was on one."""
    told = gpus(record.resources) if record.resources else ""
    if told:
        yield "GPU", told


def checked(record: Record) -> Rows:
    if record.validation:
        yield "validated", validation_line(record.validation)


def tree(times: TimeTree, name: str = "where the time went") -> tuple[Section, ...]:
    """Draw the tree, and under it how it was timed and what is in no part."""
    return draw_account(name, replace(times, calls=0), COLUMNS)


def kernels_line(record: Record) -> str:
    """Say whose arithmetic the updates were made with."""
    counted = {
        name.removeprefix("updates."): times
        for name, times in record.path.counters.items()
        if name.startswith("updates.")
    }
    return ", ".join(f"{name} in {count(times, 'update')}" for name, times in counted.items()) or "none"


def trained_line(record: Record) -> str:
    work, windows = record.work, count(record.method.rounds, "window")
    updates = count(work.updates, "update")
    return f"{work.env_steps:,} env-steps, {work.agent_steps:,} agent-steps in {updates}, {windows}"


def speed_line(record: Record) -> str:
    """Counted steps over wall, of the whole run and of its windows."""
    wall_ns, steps = (sum(record.values.get(name, ())) for name in ("wall_ns", "env_steps"))
    if not wall_ns:
        return "no window was finished"
    windows = record.values["env_steps_per_s"]
    spread = f"windows from {speed(min(windows))} to {speed(max(windows))}"
    return f"{steps * 1e9 / wall_ns:,.0f} env-steps/s ({steps:,.0f} in {wall_ns / 1e9:.2f} s); {spread}"


def stage_line(stage: Record) -> str:
    """Return what one phase of a training came to."""
    metric = stage.metrics.get("env_steps_per_s")
    pace = f", {speed(metric.median)} env-steps/s {speed_interval(metric.ci95)}".rstrip() if metric else ""
    return f"{stage.work.env_steps:,} env-steps in {count(stage.work.updates, 'update')}{pace}"


def validation_line(checked: Validation) -> str:
    if checked.difference:
        kept = f"; hotloop validate --replay {checked.bundle} shows it again" if checked.bundle else ""
        return f"DIFFERS from {checked.against}: {checked.difference}{kept}"
    seen = f"{checked.comparisons:,} outputs of agents"
    return f"{seen} equal to the twin's, to the byte, with the policy in the loop"
