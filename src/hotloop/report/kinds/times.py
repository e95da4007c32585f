"""Where time went: the tree of a loop, or the phases of a step, as every report draws them; both add up."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from hotloop.core.record import Record
from hotloop.core.record.profile import OWN_STEP, PYTHON, STEP, WALL, read_times
from hotloop.core.time_tree import HOW, LARGEST, REST, WHOLE, How, TimeTree, caption
from hotloop.report.section import Branch, Note, Section, Span, Tree
from hotloop.report.units import count, percent

FOLD_BELOW = 0.01  # Of the step; smaller phases share one line
SELF = "self"  # What a row has beyond its children
SMALLEST = 0.0005  # Of the whole; a smaller rest is not worth a line
MOST_MOVING = 4  # Phases named, those that move the most first

# What a column shows of a row, of which the second is its share of the whole.
Cell = Callable[[TimeTree, float], str]


def of_wall(_: TimeTree, share: float) -> str:
    return percent(share)


def calls_of(row: TimeTree, _: float) -> str:
    return f"{row.calls:,}" if row.calls else ""


def draw_times(
    title: str,
    tree: TimeTree,
    columns: Mapping[str, Cell],
    *,
    whole: str = WHOLE,
    largest: str | None = None,
) -> Tree:
    """Draw a tree, the whole first, with a bar for the share of each row; `largest` is the path to mark."""

    def branch(row: TimeTree) -> Branch:
        share = row.total_ns / max(tree.total_ns, 1)
        return Branch(
            name=row.name or whole,
            depth=row.depth,
            values=tuple(cell(row, share) for cell in columns.values()),
            share=share if row.path else None,
            strong=not row.path,
            mark=Span(LARGEST, "warn", strong=True) if row.path == largest else "",
        )

    return Tree(title=title, columns=tuple(columns), branches=tuple(map(branch, tree.walk())))


def draw_account(title: str, tree: TimeTree, columns: Mapping[str, Cell]) -> tuple[Section, ...]:
    """Draw a tree with what is in no part, and below it how it was timed."""
    largest, drawn = tree.largest, tree.with_rests(SMALLEST * tree.total_ns)
    rows = draw_times(title, drawn, columns, largest=largest.path if largest else None)
    return rows, Note(words=Span(caption(tree), "dim"))


def account_of(record: Record) -> TimeTree | None:
    """Return the tree that a run or a training keeps; None if nothing was timed."""
    last: dict[str, How] = {how: how for how in HOW}
    return read_times(record.phases, last.get(record.method.clock.rpartition(" ")[2], "sync"))


def breakdown(record: Record, *, is_page: bool = False) -> Tree | Note:
    """Draw where the time of a profile went: the tree of a loop, or the phases of a step.

    A page shows of each line the time of an env-step, and its share of the whole.
    """
    if is_tree(record):
        return loop_tree(record, is_page=is_page)
    lines = step_lines(record)
    if not lines:
        return Note(words=f"{'No' if is_page else 'no'} pair of passes was finished{'.' * is_page}")
    wall_ns, step_ns = lines[-1].ns, next(line.ns for line in lines if line.is_sum)
    env_steps = next(phase.calls for phase in record.phases if phase.path == WALL)
    agents = record.work.agent_steps / record.work.env_steps
    columns: dict[str, Callable[[StepLine], str]]
    if is_page:
        columns = {"Avg Time": lambda line: f"{line.ns / env_steps / 1e3:.3f} µs"}
    else:
        columns = {
            "µs/env-step": lambda line: f"{line.ns / env_steps / 1e3:.3f}",
            "ns/agent-step": lambda line: f"{line.ns / (env_steps * agents):.1f}",
            "of step": lambda line: percent(line.ns / step_ns) if line.in_step else "",
        }
    branches = tuple(
        Branch(
            name=line.name,
            values=(*(cell(line) for cell in columns.values()), percent(line.ns / wall_ns)),
            share=None if line.is_sum else line.ns / wall_ns,
            strong=line.is_sum,
            end=line.is_sum,
        )
        for line in lines
    )
    share = "% of Total" if is_page else "of wall"
    return Tree(title="Component" if is_page else "phase", columns=(*columns, share), branches=branches)


def loop_tree(record: Record, *, is_page: bool = False) -> Tree:
    """Draw where the time of a loop went; phases of an engine by its own clock, too."""
    tree = loop_rows(record)
    env_steps = record.work.env_steps
    if record.kind == "bench":  # its work is that of the clean rounds, the tree of the instrumented passes
        env_steps = tree.calls * int(record.target.variant.get("num_envs", 1))
    each_us = 1 / max(env_steps, 1) / 1e3
    own_ns = {
        row.path: step.total_ns
        for step in tree.walk()
        if step.name == OWN_STEP and step.total_ns
        for row in step.walk()
    }
    columns: dict[str, Cell]
    if is_page:
        columns = {
            "Avg Time": lambda row, _: f"{row.total_ns * each_us:.3f} µs",
            "% of Total": of_wall,
        }
        return draw_times("Component", tree, columns, whole=WALL)
    columns = {"calls": calls_of, "µs/env-step": lambda row, _: f"{row.total_ns * each_us:.3f}"}
    if own_ns:
        columns["of its step"] = lambda row, _: (
            percent(row.total_ns / own_ns[row.path]) if row.path in own_ns else ""
        )
    return draw_times("where", tree, {**columns, "of wall": of_wall}, whole=WALL)


def loop_rows(record: Record) -> TimeTree:
    """Return a profile's tree, the largest rows first, with what rows have themselves and what is in none."""
    tree = read_times(record.phases)
    assert tree is not None, "a loop has a wall"

    def arranged(row: TimeTree) -> TimeTree:
        rows = tuple(map(arranged, sorted(row.children, key=lambda each: -each.total_ns)))
        if row.path and rows and abs(row.self_ns) > SMALLEST * tree.total_ns:
            rows += (TimeTree(path=f"{row.path}/{SELF}", total_ns=row.self_ns),)
        return replace(row, children=rows)

    rest = TimeTree(path=REST, total_ns=record.unaccounted_ns or 0)
    return replace(tree, children=(*arranged(tree).children, rest))


class StepLine(NamedTuple):
    """One line of a step's phases, and of what the wall has beyond the step."""

    name: str
    ns: int
    in_step: bool = True
    is_sum: bool = False


def step_lines(record: Record) -> tuple[StepLine, ...]:
    """Return phases and unaccounted, which add up to the step; then what adds up to the wall with it.

    The phases come largest first, and small ones share a line. Nothing if nothing was timed.
    """
    tree = read_times(record.phases)
    if tree is None:
        return ()
    step = next(row for row in tree.children if f"{WALL}/{row.path}" == STEP)
    phases = sorted(step.children, key=lambda row: -row.total_ns)
    large = [row for row in phases if row.total_ns >= FOLD_BELOW * step.total_ns]
    small = phases[len(large) :]
    lines = [StepLine(row.name, row.total_ns) for row in large]
    if small:
        name = f"{count(len(small), 'phase')} under {FOLD_BELOW:.0%}"
        lines.append(StepLine(name, sum(row.total_ns for row in small)))
    lines.append(StepLine(REST, record.unaccounted_ns or 0))
    lines.append(StepLine(f"{record.target.impl} step", step.total_ns, is_sum=True))
    for row in sorted(tree.children, key=lambda row: f"{WALL}/{row.path}" == PYTHON):
        if row is not step:
            name = "Python and binding" if f"{WALL}/{row.path}" == PYTHON else row.name
            lines.append(StepLine(name, row.total_ns, in_step=False))
    lines.append(StepLine(WALL, tree.total_ns, in_step=False, is_sum=True))
    return tuple(lines)


def is_tree(record: Record) -> bool:
    """Return whether a profile is of a loop, rather than of the phases of a batch's step."""
    paths = [phase.path for phase in record.phases]
    return WALL in paths and STEP not in paths


def step_shares(record: Record) -> dict[str, float]:
    """Return the share of the step that each phase has; nothing if a record has no step."""
    totals = {phase.path: phase.total_ns for phase in record.phases}
    step_ns = totals.get(STEP, 0)
    inside = [path for path in totals if path.startswith(STEP + "/")] if step_ns else []
    return {path.removeprefix(STEP + "/"): totals[path] / step_ns for path in inside}


def shifts(records: Sequence[Record]) -> str:
    """Return targets, then each phase's share in all of them; empty for fewer than two."""
    tables = [step_shares(record) for record in records if record.phases]
    if len(tables) < 2:
        return ""
    spans = {name: [table.get(name, 0.0) for table in tables] for name in tables[0]}
    moving = sorted(spans, key=lambda name: min(spans[name]) - max(spans[name]))[:MOST_MOVING]
    named = ", ".join(f"{name} {' → '.join(map(percent, spans[name]))}" for name in moving)
    return f"{' → '.join(record.target.name for record in records if record.phases)}: {named}"
