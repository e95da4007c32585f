"""Records drawn for a terminal."""

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.core.notices import Notice
from hotloop.core.record import OUTCOME, Record
from hotloop.report.breakdown import Line, break_down
from hotloop.report.facts import (
    code_line,
    goal_line,
    instructions_line,
    machine_line,
    mean_line,
    method_line,
    pace_line,
    path_line,
    shadow_line,
    size_line,
    work_line,
)
from hotloop.report.tree import branches, is_tree
from hotloop.report.units import percent, ratio_interval, speed, speed_interval
from hotloop.stats.summary import label, summarise

BAR_CELLS = 24
SPREAD_STYLES = {"excellent": "green", "good": "green", "fair": "yellow", "unstable": "bold red"}


def draw_bench(records: Sequence[Record]) -> RenderableType:
    """One row a target, then the facts that stand beside them."""
    table = plain_table("target", "impl")
    for heading in ("agent-steps/s", "95% interval", "spread", "env-steps/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for record in records:
        table.add_row(record.target.name, ran_as(record), *speeds(record))
    return Group(table, facts(records), *(draw_phases(record) for record in records if record.phases))


def draw_phases(record: Record) -> RenderableType:
    """The phases that a bench found after its clean rounds, and what the instrument cost."""
    title = Text.assemble((record.target.name, "bold"), "  instrumented passes, after the clean rounds")
    table = fact_table()
    add_cost(table, record)
    return Group("", title, phase_table(record), table)


def speeds(record: Record) -> Sequence[RenderableType]:
    """The cells of a record's throughput."""
    agent, env = record.metrics.get("agent_steps_per_s"), record.metrics.get("env_steps_per_s")
    if agent is None or env is None:
        return ("no rounds",)
    return Text(speed(agent.median), "bold"), speed_interval(agent.ci95), spread(record), speed(env.median)


def spread(record: Record) -> Text:
    """How much the rounds varied, by standard deviation and, robustly, by the median deviation."""
    rounds = summarise(record.values["env_steps_per_s"])
    if rounds.cv is None:
        return Text("one round")
    word = label(rounds.cv)
    shown = f"{percent(rounds.cv)} {word}, MAD {percent(rounds.mad / rounds.median)}"
    return Text(shown, SPREAD_STYLES[word])


def ran_as(record: Record) -> Text:
    """The implementation; in red where another was hoped for."""
    fell_back = record.path.requested == "auto" and record.target.impl == "reference"
    return Text(record.target.impl + (" (fell back)" if fell_back else ""), "bold red" if fell_back else "")


def draw_profile(record: Record) -> RenderableType:
    """Where the time went, the speed without the instrument, and what the instrument cost."""
    title = Text.assemble((record.target.name, "bold"), "  ", ran_as(record), "  ", size_line(record))
    return Group(title, phase_table(record), clean_facts(record), facts([record]))


def phase_table(record: Record) -> RenderableType:
    if is_tree(record):
        return tree_table(record)
    breakdown = break_down(record)
    if breakdown is None:
        return Text("no pair of passes was finished")
    table = plain_table("phase")
    for heading in ("µs/env-step", "ns/agent-step", "of step", "of wall"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("")
    for line in breakdown.lines:
        style = "bold" if line.is_sum else ""
        table.add_row(*phase_cells(line), style=style, end_section=line.is_sum)
    return table


def tree_table(record: Record) -> RenderableType:
    """Where the time of a loop went, from the whole inwards."""
    table = plain_table("where")
    for heading in ("calls", "µs/env-step", "of wall"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("")
    for branch in branches(record):
        table.add_row(
            branch.indented,
            "" if branch.calls is None else f"{branch.calls:,}",
            f"{branch.us_per_env_step:.3f}",
            percent(branch.of_wall),
            "" if branch.is_whole else Text(bar(branch.of_wall), "cyan"),
            style="bold" if branch.is_whole else "",
        )
    return table


def phase_cells(line: Line) -> Sequence[RenderableType]:
    return (
        line.name,
        f"{line.us_per_env_step:.3f}",
        f"{line.ns_per_agent_step:.1f}",
        "" if line.of_step is None else percent(line.of_step),
        percent(line.of_wall),
        "" if line.is_sum else Text(bar(line.of_wall), "cyan"),
    )


def bar(share: float) -> str:
    """A bar of block characters, to an eighth of a cell."""
    eighths = round(max(0.0, min(1.0, share)) * BAR_CELLS * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def clean_facts(record: Record) -> RenderableType:
    """Throughput and the instrument's cost, both from the pairs."""
    table = fact_table()
    metric = record.metrics.get("agent_steps_per_s")
    if metric:
        words = f"{speed(metric.median)} agent-steps/s {speed_interval(metric.ci95)}, "
        table.add_row("speed", Text.assemble(words, spread(record), " (clean passes)"))
    add_cost(table, record)
    return table


def add_cost(table: Table, record: Record) -> None:
    """What the instrument cost, where there were pairs enough to say."""
    if record.overhead:
        cost = ratio_interval(record.overhead.ratio, record.overhead.ci95)
        table.add_row("instrument", f"takes {cost} times as long as the clean passes")


def draw_sim(record: Record) -> RenderableType:
    """What the episodes came to, what happened in them, and how long it took."""
    title = Text.assemble((record.target.name, "bold"), "  ", ran_as(record), "  ", size_line(record))
    about = fact_table()
    about.add_row("player", record.method.policy)
    about.add_row("episodes", f"{record.method.rounds:,}")
    about.add_row("length", mean_line(record, "episode_length", "steps"))
    about.add_row("return", Text(mean_line(record, "return_per_agent", "per agent"), "bold"))
    for name in record.values:
        if name.startswith(OUTCOME):
            about.add_row(name.removeprefix(OUTCOME), Text(mean_line(record, name), "bold"))
    about.add_row("work", work_line(record))
    about.add_row("speed", f"{pace_line(record)}, the player's choosing included")
    about.add_row("machine", machine_line(record.machine))
    about.add_row("commit", code_line(record.code))
    about.add_row("path", path_line(record))
    return Group(title, about, coverage_table(record))


def coverage_table(record: Record) -> RenderableType:
    """Every mechanic that fired, the most frequent first, and those that never did."""
    coverage = sorted(record.work.coverage.items(), key=lambda item: -item[1])
    table = plain_table("what happened")
    for heading in ("times", "per episode", "per 1,000 agent-steps"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, times in coverage:
        if times:
            per_episode = f"{times / record.method.rounds:,.1f}" if record.method.rounds else ""
            rate = f"{1_000 * times / record.work.agent_steps:,.2f}"
            table.add_row(name, f"{times:,}", per_episode, rate)
    never = ", ".join(name for name, times in coverage if not times)
    return Group(table, Text(f"never happened: {never}", "dim")) if never else table


def facts(records: Sequence[Record]) -> RenderableType:
    """What holds for all of them, as the last one has it, and the path of each."""
    last = records[-1]
    table = fact_table()
    table.add_row("machine", machine_line(last.machine))
    table.add_row("commit", code_line(last.code))
    table.add_row("method", method_line(last))
    for record in records:
        target = f"{record.target.name}: " if len(records) > 1 else ""
        table.add_row("path", target + path_line(record))
        if record.goal:
            style = "" if record.goal.met else "bold red"
            table.add_row("target", Text(target + goal_line(record, record.goal), style))
        if counted := instructions_line(record):
            table.add_row("instructions", target + counted)
        if compared := shadow_line(record):
            table.add_row("shadow", target + compared)
    return table


def draw_notices(records: Sequence[Record]) -> RenderableType:
    """Each notice once, with the targets it holds for where it does not hold for all."""
    holds: dict[Notice, list[str]] = {}
    for record in records:
        for notice in record.notices:
            holds.setdefault(notice, []).append(record.target.name)
    lines = (
        draw_notice(notice, "" if len(targets) == len(records) else f"{', '.join(targets)}: ")
        for notice, targets in holds.items()
    )
    return Group(*lines)


def draw_notice(notice: Notice, who: str = "") -> Text:
    return Text.assemble(("! ", "yellow"), who, notice.text, (f"; {notice.remedy}", "dim"))


def plain_table(*headings: str) -> Table:
    return Table(*headings, box=box.SIMPLE_HEAD, pad_edge=False)


def fact_table() -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True, min_width=10)
    table.add_column()
    return table
