"""A training run drawn for people: the tree of its time, and its curves."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from hotloop.core.record import WALL, Record, Validation
from hotloop.core.record.times import LARGEST, How, Region, Times, caption, tree_lines
from hotloop.report.facts import code_line, machine_line, path_line, size_line
from hotloop.report.terminal import bar, fact_table, plain_table, ran_as
from hotloop.report.units import count, percent, plain, sparkline, speed

HOWS: tuple[How, ...] = ("sync", "events", "async")


def draw_tree(times: Times, title: str = "where the time went") -> RenderableType:
    """The tree as a table, and under it how it was timed and what is in no part."""
    table = plain_table(title)
    for heading in ("ms", "of wall", "calls"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("")
    for line in tree_lines(times):
        if line.calls is None and line.depth > 1 and abs(line.share) < 0.0005:
            continue  # a rest too small to show
        note = Text(bar(line.share) if line.depth else "", "cyan")
        if line.largest:
            note.append(f" {LARGEST}", "bold yellow")
        table.add_row(
            "  " * line.depth + line.name,
            f"{line.ms:,.2f}",
            percent(line.share),
            "" if line.calls is None else f"{line.calls:,}",
            note,
            style="bold" if line.depth == 0 else "",
        )
    return Group(table, Text(caption(times), "dim"))


def draw_training(record: Record) -> RenderableType:
    """What a run came to, and where its time went."""
    title = Text.assemble((record.target.name, "bold"), "  ", ran_as(record), "  ", size_line(record))
    about = fact_table()
    about.add_row("trained", trained_line(record))
    about.add_row("speed", Text(speed_line(record), "bold"))
    for name, shown in (("return", "return_per_agent"), ("eval", "eval_return"), ("agreement", "agreement")):
        if curve := record.values.get(shown):
            about.add_row(name, curve_line(curve))
    if record.validation:
        about.add_row("validated", validation_line(record.validation))
    about.add_row("machine", machine_line(record.machine))
    about.add_row("commit", code_line(record.code))
    about.add_row("path", path_line(record))
    about.add_row("kernels", kernels_line(record))
    times = times_of(record)
    return Group(title, about, *([draw_tree(times, "all windows")] if times else []))


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


def curve_line(values: Sequence[float]) -> str:
    return f"{plain(values[-1])} at the end, {plain(values[0])} at the beginning  {sparkline(values)}"


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
        Region(path=path.removeprefix(f"{WALL}/"), calls=row.calls, total_ns=row.total_ns)
        for path, row in rows.items()
        if path != WALL
    )
    how: How = next((each for each in HOWS if record.method.clock.endswith(each)), "sync")
    return Times(how=how, wall_ns=rows[WALL].total_ns, regions=tuple(regions))
