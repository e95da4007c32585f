"""A training run: what it came to, its curves, and the tree of its time."""

from hotloop.core.record.comparison import Validation
from hotloop.core.record.profile import WALL
from hotloop.core.record.record import Record
from hotloop.core.record.times import LARGEST, How, Region, Times, TimesLine, caption, tree_lines
from hotloop.judge.stages import views
from hotloop.report.sections.facts import Rows, origin, path_line, title
from hotloop.report.sections.findings import gpus
from hotloop.report.sections.section import Branch, Curve, Facts, Note, Section, Sections, Span, Tree, facts
from hotloop.report.units import count, percent, speed, speed_interval

HOWS: tuple[How, ...] = ("sync", "events", "async")
CURVES = {"return": "return_per_agent", "eval": "eval_return", "agreement": "agreement"}
"""What a curve is called, and the values it is of."""
SMALLEST = 0.0005
"""Of the wall; a rest below it is too small to show, unless it is the whole's."""


def train(record: Record) -> Sections:
    """What a run came to, and where its time went."""
    times = times_of(record)
    stages = [(str(each.label), times_of(each)) for each in views(record)]
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
    """How busy the GPU was, where the network was on one."""
    told = gpus(record.resources) if record.resources else ""
    if told:
        yield "GPU", told


def checked(record: Record) -> Rows:
    if record.validation:
        yield "validated", validation_line(record.validation)


def tree(times: Times, name: str = "where the time went") -> tuple[Section, ...]:
    """The tree, and under it how it was timed and what is in no part."""
    shown = [line for line in tree_lines(times) if not is_small_rest(line)]
    lines = Tree(title=name, columns=("ms", "of wall", "calls"), branches=tuple(map(branch, shown)))
    return lines, Note(words=Span(caption(times), "dim"))


def is_small_rest(line: TimesLine) -> bool:
    return line.calls is None and line.depth > 1 and abs(line.share) < SMALLEST


def branch(line: TimesLine) -> Branch:
    return Branch(
        name=line.name,
        depth=line.depth,
        values=(f"{line.ms:,.2f}", percent(line.share), "" if line.calls is None else f"{line.calls:,}"),
        share=line.share if line.depth else None,
        strong=line.depth == 0,
        mark=Span(LARGEST, "warn", strong=True) if line.largest else "",
    )


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


def times_of(record: Record) -> Times | None:
    """The tree that a record keeps; None where nothing was timed."""
    rows = {phase.path: phase for phase in record.phases}
    if WALL not in rows:
        return None
    regions = (
        Region(path=path.removeprefix(f"{WALL}/"), calls=row.calls, total_ns=row.total_ns, cpu_ns=row.cpu_ns)
        for path, row in rows.items()
        if path.startswith(f"{WALL}/")
    )
    how: How = next((each for each in HOWS if record.method.clock.endswith(each)), "sync")
    wall = rows[WALL]
    return Times(how=how, wall_ns=wall.total_ns, regions=tuple(regions), cpu_ns=wall.cpu_ns)
