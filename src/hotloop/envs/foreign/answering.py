"""What envs that are stepped one at a time have in common: their calls in spans, counts and answers."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from hotloop.envs.foreign.spec import (
    ENV_RESET,
    ENV_STEP,
    Answers,
    ForeignSpec,
    everything,
    in_span,
    native_phases,
    time_inside,
)

NAMES = ("observations", "rewards", "terminals", "truncations", "infos")


class Answering:
    """An env that is asked call by call; a kind of env says what a reset, a step and a draw are."""

    def __init__(self, env: Any, spec: ForeignSpec, *, timed: bool) -> None:
        self.env, self.spec = env, spec
        if timed:
            time_inside(env)
        self._step = in_span(ENV_STEP, env.step, timed=timed)
        self._reset = in_span(ENV_RESET, env.reset, timed=timed)
        self._steps = self.resets = 0
        self._answers = Answers()
        self._given: tuple[Any, ...] = (None, 0.0, False, False, {})
        """The last observation, reward, terminated, truncated and info."""
        self.observation: Any = None
        """What the next action is to be chosen from."""

    @property
    def counters(self) -> dict[str, int]:
        return {
            "foreign_steps": self._steps,
            "env_steps": self._steps,
            "agent_steps": self.agent_steps,
            "resets": self.resets,
        }

    @property
    def agent_steps(self) -> int:
        return self._steps

    def answers(self) -> Mapping[str, NDArray[Any]]:
        return self._answers.read(self._parts())

    def everything(self) -> Mapping[str, NDArray[Any]]:
        """All of the last call's answers, also those that a reset does not give."""
        return everything(self._parts())

    def _parts(self) -> dict[str, Any]:
        """What was given, by name."""
        return dict(zip(NAMES, self._given, strict=True))

    def phase_totals(self) -> dict[str, int]:
        return native_phases(self.env)

    def close(self) -> None:
        close = getattr(self.env, "close", None)
        if callable(close):
            close()


def plainly(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """What one agent was given, its reward a float and its ends truth values."""
    seen, reward, ended, cut, info = given
    return seen, float(reward), bool(ended), bool(cut), info
