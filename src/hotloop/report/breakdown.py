"""The lines of a profile that add up, in the order they are read: largest phase first."""

from dataclasses import dataclass

from hotloop.core.record import PYTHON, STEP, WALL, Record
from hotloop.report.units import count

FOLD_BELOW = 0.01
"""Of the step; smaller phases share one line."""


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
    """Phases and unaccounted add up to the step; Python and step add up to the wall."""

    phases: tuple[Line, ...]
    unaccounted: Line
    step: Line
    python: Line
    wall: Line

    @property
    def lines(self) -> tuple[Line, ...]:
        return (*self.phases, self.unaccounted, self.step, self.python, self.wall)


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
        python=line("Python and binding", totals[PYTHON], in_step=False),
        wall=line("wall", totals[WALL], in_step=False, is_sum=True),
    )


def fold(phases: dict[str, int], step_ns: int) -> list[tuple[str, int]]:
    """Sort phases by time and put the small ones together."""
    large = {name: ns for name, ns in phases.items() if ns >= FOLD_BELOW * step_ns}
    small = [ns for name, ns in phases.items() if name not in large]
    lines = sorted(large.items(), key=lambda item: -item[1])
    return [*lines, (f"{count(len(small), 'phase')} under {FOLD_BELOW:.0%}", sum(small))] if small else lines
