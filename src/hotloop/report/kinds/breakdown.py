"""Where the time of a profile went: the phases of a step, or the tree of a loop; both add up."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hotloop.core.record.profile import OWN_STEP, PYTHON, STEP, WALL, Phase
from hotloop.core.record.record import Record
from hotloop.report import section
from hotloop.report.section import Note, Tree
from hotloop.report.units import count, percent

FOLD_BELOW = 0.01
"""Of the step; smaller phases share one line."""
SELF = "self"
"""What a row has beyond its children."""
SMALLEST = 0.0005
"""Of the wall; a self below it is not worth a line."""
MOST_MOVING = 4
"""Phases named, those that move the most first."""


def breakdown(record: Record) -> Tree | Note:
    """Every line with all that is known of it."""
    if is_tree(record):
        return loop_tree(record)
    parts = break_down(record)
    return phase_tree(parts) if parts else Note(words="no pair of passes was finished")


def components(record: Record) -> Tree | Note:
    """The same lines as a page has them: what each takes of an env-step, and its share of the whole."""
    if is_tree(record):
        rows = [
            (each.name, each.depth, each.us_per_env_step, each.of_wall, each.is_whole)
            for each in branches(record)
        ]
    elif parts := break_down(record):
        rows = [(each.name, 0, each.us_per_env_step, each.of_wall, each.is_sum) for each in parts.lines]
    else:
        return Note(words="No pair of passes was finished.")
    lines = [
        section.Branch(
            name=name,
            depth=depth,
            values=(f"{us:.3f} µs", percent(share)),
            share=None if is_sum else share,
            strong=is_sum,
        )
        for name, depth, us, share, is_sum in rows
    ]
    return Tree(title="Component", columns=("Avg Time", "% of Total"), branches=tuple(lines))


def phase_tree(parts: "Breakdown") -> Tree:
    """The phases of a step, with what they come to for one agent."""
    columns = ("µs/env-step", "ns/agent-step", "of step", "of wall")
    lines = [
        section.Branch(
            name=line.name,
            values=(
                f"{line.us_per_env_step:.3f}",
                f"{line.ns_per_agent_step:.1f}",
                "" if line.of_step is None else percent(line.of_step),
                percent(line.of_wall),
            ),
            share=None if line.is_sum else line.of_wall,
            strong=line.is_sum,
            end=line.is_sum,
        )
        for line in parts.lines
    ]
    return Tree(title="phase", columns=columns, branches=tuple(lines))


def loop_tree(record: Record) -> Tree:
    """Where the time of a loop went, from the whole inwards; phases of an engine by its own clock, too."""
    found = branches(record)
    timed = any(branch.of_own is not None for branch in found)
    lines = [
        section.Branch(
            name=branch.name,
            depth=branch.depth,
            values=(
                "" if branch.calls is None else f"{branch.calls:,}",
                f"{branch.us_per_env_step:.3f}",
                *(["" if branch.of_own is None else percent(branch.of_own)] if timed else []),
                percent(branch.of_wall),
            ),
            share=None if branch.is_whole else branch.of_wall,
            strong=branch.is_whole,
        )
        for branch in found
    ]
    columns = ("calls", "µs/env-step", *(["of its step"] if timed else []), "of wall")
    return Tree(title="where", columns=columns, branches=tuple(lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a breakdown."""

    name: str
    us_per_env_step: float
    ns_per_agent_step: float
    of_step: float | None
    """None for what is not part of the step."""
    of_wall: float
    is_sum: bool = False
    """Whether it adds up lines above it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """Phases and unaccounted add up to the step; Python, what is beside it and step add up to the wall."""

    phases: tuple[Line, ...]
    unaccounted: Line
    step: Line
    beside: tuple[Line, ...]
    python: Line
    wall: Line

    @property
    def lines(self) -> tuple[Line, ...]:
        return (*self.phases, self.unaccounted, self.step, *self.beside, self.python, self.wall)


def break_down(record: Record) -> Breakdown | None:
    """Fold a record's phases into lines; None where it has none."""
    totals = {phase.path: phase.total_ns for phase in record.phases}
    if not totals:
        return None
    env_steps = next(phase.calls for phase in record.phases if phase.path == WALL)
    agents = record.work.agent_steps / record.work.env_steps

    def line(name: str, total_ns: int, *, in_step: bool = True, is_sum: bool = False) -> Line:
        return Line(
            name=name,
            us_per_env_step=total_ns / env_steps / 1e3,
            ns_per_agent_step=total_ns / (env_steps * agents),
            of_step=total_ns / totals[STEP] if in_step else None,
            of_wall=total_ns / totals[WALL],
            is_sum=is_sum,
        )

    inside = {path.removeprefix(STEP + "/"): ns for path, ns in totals.items() if path.startswith(STEP + "/")}
    return Breakdown(
        phases=tuple(line(name, ns) for name, ns in fold(inside, totals[STEP])),
        unaccounted=line("unaccounted", record.unaccounted_ns or 0),
        step=line(f"{record.target.impl} step", totals[STEP], is_sum=True),
        beside=tuple(line(name, ns, in_step=False) for name, ns in beside_step(totals).items()),
        python=line("Python and binding", totals[PYTHON], in_step=False),
        wall=line("wall", totals[WALL], in_step=False, is_sum=True),
    )


def beside_step(totals: Mapping[str, int]) -> dict[str, int]:
    """What the caller's thread does beside the engine's step, such as a log."""
    tops = {path: ns for path, ns in totals.items() if path.rpartition("/")[0] == WALL}
    return {path.rpartition("/")[2]: ns for path, ns in tops.items() if path not in (PYTHON, STEP)}


def fold(phases: dict[str, int], step_ns: int) -> list[tuple[str, int]]:
    """Sort phases by time and put the small ones together."""
    large = {name: ns for name, ns in phases.items() if ns >= FOLD_BELOW * step_ns}
    small = [ns for name, ns in phases.items() if name not in large]
    lines = sorted(large.items(), key=lambda item: -item[1])
    return [*lines, (f"{count(len(small), 'phase')} under {FOLD_BELOW:.0%}", sum(small))] if small else lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One line of a tree."""

    name: str
    depth: int
    calls: int | None
    """None where it is the rest of something."""
    us_per_env_step: float
    of_wall: float
    of_own: float | None = None
    """Of the step as the env times it itself; None of a row that is not in it."""

    @property
    def is_whole(self) -> bool:
        return self.depth == 0


def is_tree(record: Record) -> bool:
    """Whether a profile is of a loop, rather than of the phases of a batch's step."""
    paths = [phase.path for phase in record.phases]
    return WALL in paths and STEP not in paths


def steps_of_tree(record: Record, wall: Phase) -> int:
    """Env-steps that a tree is about: of a bench those of its instrumented passes, after the clean rounds."""
    if record.kind != "bench":
        return record.work.env_steps
    envs: int = record.target.variant.get("num_envs", 1)
    return wall.calls * envs


def branches(record: Record) -> tuple[Branch, ...]:
    """The tree from the whole inwards, the largest first, and at its end what is in no row."""
    rows = {phase.path: phase for phase in record.phases}
    wall_ns, env_steps = rows[WALL].total_ns, max(steps_of_tree(record, rows[WALL]), 1)

    def branch(name: str, depth: int, ns: int, calls: int | None = None, own: int | None = None) -> Branch:
        return Branch(
            name=name,
            depth=depth,
            calls=calls,
            us_per_env_step=ns / env_steps / 1e3,
            of_wall=ns / wall_ns,
            of_own=ns / own if own else None,
        )

    def walk(row: Phase, depth: int, own: int | None = None) -> Iterator[Branch]:
        name = row.path.rpartition("/")[2]
        own = row.total_ns if name == OWN_STEP else own
        yield branch(name, depth, row.total_ns, row.calls, own)
        below = children(rows, row.path)
        for child in sorted(below, key=lambda each: -each.total_ns):
            yield from walk(child, depth + 1, own)
        own_ns = row.total_ns - sum(child.total_ns for child in below)
        if below and depth and abs(own_ns) > SMALLEST * wall_ns:
            yield branch(SELF, depth + 1, own_ns, own=own)

    return (*walk(rows[WALL], 0), branch("unaccounted", 1, record.unaccounted_ns or 0))


def children(rows: dict[str, Phase], path: str) -> list[Phase]:
    return [row for each, row in rows.items() if each.rpartition("/")[0] == path]


def shares(record: Record) -> dict[str, float]:
    """Phase to its share of the step; none where a record has no step."""
    totals = {phase.path: phase.total_ns for phase in record.phases}
    step_ns = totals.get(STEP, 0)
    inside = [path for path in totals if path.startswith(STEP + "/")] if step_ns else []
    return {path.removeprefix(STEP + "/"): totals[path] / step_ns for path in inside}


def shifts(records: Sequence[Record]) -> str:
    """One line: targets, then each phase's share in all of them; empty for fewer than two."""
    tables = [shares(record) for record in records if record.phases]
    if len(tables) < 2:
        return ""
    spans = {name: [table.get(name, 0.0) for table in tables] for name in tables[0]}
    moving = sorted(spans, key=lambda name: min(spans[name]) - max(spans[name]))[:MOST_MOVING]
    named = ", ".join(f"{name} {' → '.join(map(percent, spans[name]))}" for name in moving)
    return f"{' → '.join(record.target.name for record in records if record.phases)}: {named}"
