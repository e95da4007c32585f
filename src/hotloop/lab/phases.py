"""Phases as rows that add up: wall = Python and binding + step, step = its phases + unaccounted."""

from collections.abc import Mapping
from dataclasses import dataclass

from hotloop.core.record import Phase
from hotloop.core.slow import Spread

WALL = "wall"
"""From call to return, as the caller sees it."""
PYTHON = "wall/python"
"""What the wall has beyond the step: Python, and the binding to native code."""
STEP = "wall/step"
"""The whole step inside the batch; its phases are below it."""

Times = Mapping[str, int]
"""Phase to ns, with `step` for the whole of it, as a batch reports them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What the instrumented passes measured."""

    wall_ns: int
    times: Times
    env_steps: int
    threads: int
    """Threads work on a step side by side, so a phase's time is its mean over them."""
    spreads: Mapping[str, Spread]
    """Path to how single batch calls varied."""
    num_envs: int
    """Env-steps of one such call."""

    @property
    def phases(self) -> dict[str, int]:
        """Phase to ns, which the threads shared."""
        return {name: ns // self.threads for name, ns in self.times.items() if name != "step"}

    @property
    def unaccounted_ns(self) -> int:
        """What the step has beyond its phases; negative only where clocks disagree."""
        return self.times["step"] - sum(self.phases.values())

    def rows(self) -> tuple[Phase, ...]:
        """Draw up the account, the whole first."""
        step_ns = self.times["step"]
        inside = (self._row(f"{STEP}/{name}", ns) for name, ns in self.phases.items())
        return (
            self._row(WALL, self.wall_ns),
            self._row(PYTHON, self.wall_ns - step_ns),
            self._row(STEP, step_ns),
            *inside,
        )

    def _row(self, path: str, total_ns: int) -> Phase:
        spread = self.spreads.get(path, Spread(path=path, calls=0))
        return Phase(
            path=path,
            calls=self.env_steps,
            total_ns=total_ns,
            mean_ns=total_ns / self.env_steps,
            p50_ns=self._of_env_step(spread.p50_ns),
            p95_ns=self._of_env_step(spread.p95_ns),
            p99_ns=self._of_env_step(spread.p99_ns),
            max_ns=self._of_env_step(spread.max_ns),
            share=total_ns / self.wall_ns,
        )

    def _of_env_step(self, call_ns: float | None) -> float | None:
        return None if call_ns is None else call_ns / self.num_envs
