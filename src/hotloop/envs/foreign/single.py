"""One env that is stepped by itself: Gymnasium's, or any object with reset and step."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.envs.foreign.actions import Sample, sampler
from hotloop.envs.foreign.spec import (
    RESET,
    STEP,
    Answers,
    ForeignSpec,
    everything,
    in_span,
    native_phases,
    raised,
    time_inside,
)

Given = tuple[Any, Any, Any, Any, Any]
"""Observation, reward, terminated, truncated, info."""
RETURNS = "(observation, reward, terminated, truncated, info), or (observation, reward, done, info)"


class SingleSubject:
    """One env; when an episode ends, the next begins in the same call and is counted."""

    autoreset = "after the step that ends an episode"

    def __init__(self, env: Any, spec: ForeignSpec, *, timed: bool) -> None:
        self.env, self.spec = env, spec
        if timed:
            time_inside(env)
        self._step = in_span(STEP, env.step, timed=timed)
        self._reset = in_span(RESET, env.reset, timed=timed)
        self._sample: Sample | None = None
        self._steps = self._resets = 0
        self._answers = Answers()
        self._given: Given = (None, 0.0, False, False, {})
        self.observation: Any = None
        """What the next action is to be chosen from."""

    def reset(self) -> None:
        try:
            given = seeded(self._reset, self.spec.seed)
        except Exception as error:
            raise raised(self.spec.name, error) from error
        self.observation = first_of(given)
        self._resets += 1
        self._given = (self.observation, 0.0, False, False, second_of(given))
        self._answers.begin(self._parts())

    def step(self, actions: Any) -> None:
        try:
            self._given = given = five(self._step(actions))
            self._steps += 1
            if given[2] or given[3]:
                self.observation = first_of(self._reset())
                self._resets += 1
            else:
                self.observation = given[0]
        except Exception as error:
            raise raised(self.spec.name, error) from error

    def draw(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        if self._sample is None:
            self._sample = sampler(self.env, self.spec.name)
        return self._sample(random, calls)

    @property
    def counters(self) -> dict[str, int]:
        return {
            "foreign_steps": self._steps,
            "env_steps": self._steps,
            "agent_steps": self._steps,
            "resets": self._resets,
        }

    def answers(self) -> Mapping[str, NDArray[Any]]:
        return self._answers.read(self._parts())

    def everything(self) -> Mapping[str, NDArray[Any]]:
        """All of the last call's answers, also those that a reset does not give."""
        return everything(self._parts())

    def _parts(self) -> dict[str, Any]:
        names = ("observations", "rewards", "terminals", "truncations", "infos")
        seen, reward, ended, cut, info = self._given
        kept = (seen, float(reward), bool(ended), bool(cut), info)
        return {**dict(zip(names, kept, strict=True)), "next_observations": self.observation}

    def phase_totals(self) -> dict[str, int]:
        return native_phases(self.env)

    def close(self) -> None:
        close = getattr(self.env, "close", None)
        if callable(close):
            close()


def five(given: Any) -> Given:
    """What a step returned in the form of today; the old one, with a single `done`, is understood too."""
    if isinstance(given, tuple) and len(given) == 5:
        return given
    if isinstance(given, tuple) and len(given) in (3, 4):
        seen, reward, done, *info = given
        return seen, reward, done, False, info[0] if info else {}
    what = f"a tuple of {len(given)}" if isinstance(given, tuple) else f"a {type(given).__name__}"
    raise InputError(f"step returned {what}: expected {RETURNS}")


def first_of(given: Any) -> Any:
    """The observation of what reset returned: (observation, info), or the observation alone."""
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], Mapping):
        return given[0]
    return given


def second_of(given: Any) -> Any:
    """The infos of what reset returned."""
    return given[1] if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], Mapping) else {}


def seeded(reset: Any, seed: int) -> Any:
    """Reset with a seed; an env that takes none is reset without."""
    try:
        return reset(seed=seed)
    except TypeError as error:
        if "seed" not in str(error):
            raise
    return reset()
