"""One env that is stepped by itself: Gymnasium's, or any object with reset and step."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hotloop.core.errors import InputError
from hotloop.core.process import lifeline
from hotloop.core.process.lifeline import STEPS, Doing
from hotloop.envs.foreign.actions import Sample, discrete, sampler
from hotloop.envs.foreign.masks import Pick, mask_in, mask_method, settled
from hotloop.envs.foreign.spec import BROKEN, awaitable_error, raised
from hotloop.envs.foreign.subject import NAMES, Answering, earned, place_of, plainly
from hotloop.envs.spec import Spec
from hotloop.envs.subject import WholeNumbers

Given = tuple[Any, Any, Any, Any, Any]
"""Observation, reward, terminated, truncated, info."""

RETURNS = "(observation, reward, terminated, truncated, info), or (observation, reward, done, info)"


class SingleSubject(Answering):
    """One env; when an episode ends, the next begins in the same call and is counted."""

    autoreset = "after the step that ends an episode"

    def __init__(self, env: Any, spec: Spec, **how: Any) -> None:
        self._begun: Any = None
        """The infos of the reset that the last call ended with; None where it did not."""
        super().__init__(env, spec, **how)
        self._sample: Sample | None = None
        self._masks = mask_method(env)
        self._many = spec.agents > 1

    def reset(self) -> None:
        try:
            with lifeline.doing(Doing.RESET, Doing.STEP):
                given = seeded(self._reset, self.spec.seed)
        except BROKEN as error:
            raise raised(self.spec.name, error) from error
        self._begun, self.resets = None, self.resets + 1
        self._given = (first_of(given), 0.0, False, False, second_of(given))
        self._answers.begin(self._parts())

    def step(self, actions: Any) -> None:
        self.play((actions,))

    def play(self, actions: Iterable[Any]) -> None:
        """Written for speed: an env may take no more than a few microseconds."""
        pulse, step, many, steps = self._pulse, self._step, self._many, self._steps
        try:
            for chosen in actions:
                pulse[STEPS] = steps
                given = step(self._pick(chosen) if type(chosen) is Pick else chosen)
                if type(given) is not tuple or len(given) != 5:
                    given = five(given)
                self._given = given
                self._steps = steps = steps + 1
                if all_over(given) if many else given[2] or given[3]:
                    begun = self._reset()
                    self._seen, self._begun = first_of(begun), second_of(begun)
                    self.resets += 1
                elif self._begun is not None:
                    self._begun = None
            pulse[STEPS] = steps  # a fork of this process that came back fails here at the latest
        except BROKEN as error:
            lifeline.end_copy(pulse)
            check_given(self._given, self.env)
            raise raised(self.spec.name, error, masked=self._is_masked) from error

    @property
    def observation(self) -> Any:
        """What the last step showed, or the reset that it ended with."""
        return self._given[0] if self._begun is None else self._seen

    @observation.setter
    def observation(self, seen: Any) -> None:
        self._seen = seen

    def _drawn(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        if self._sample is None:
            self._sample = sampler(self.env, self.spec.name)
        return self._sample(random, calls)

    def _settled(self, pick: Pick) -> Any:
        mask = self._mask()
        return pick.drawn if mask is None else settled(*pick, mask, getattr(self.env, "action_space", None))

    def _mask(self) -> Any:
        info = self._given[4] if self._begun is None else self._begun
        mask = mask_in(info, self.observation)
        return mask if mask is not None or self._masks is None or not self.resets else self._masks()

    @property
    def counters(self) -> dict[str, int]:
        """And a look at the last reward, which is nothing to count where it is no number."""
        if not self._many:
            earned(self._given[1], self.env)
        return super().counters

    @property
    def told(self) -> Mapping[str, Any]:
        return {**super().told, "info": self._given[4] if self._begun is None else self._begun}

    @property
    def whole_numbers(self) -> WholeNumbers | None:
        actions = discrete(self.env)
        if actions is None:
            return None
        return WholeNumbers(start=actions[0], count=actions[1], shape=(1,), any_is_taken=False)

    def _outputs(self) -> Mapping[str, Any]:
        return {**super()._outputs(), "next_infos": self._begun}

    def _parts(self) -> dict[str, Any]:
        given = self._given if self._many else plainly(self._given, self.env)
        parts = dict(zip(NAMES, given, strict=True))
        return {**parts, "next_observations": self.observation, "next_infos": self._begun or {}}


def five(given: Any) -> Given:
    """What a step returned in the form of today; the old one, with a single `done`, is understood too."""
    if isinstance(given, tuple) and len(given) == 5:
        return given
    if isinstance(given, tuple) and len(given) in (3, 4):
        seen, reward, done, *info = given
        return seen, reward, done, False, info[0] if info else {}
    if inspect.isawaitable(given):
        raise awaitable_error("step returned", given)
    what = f"a tuple of {len(given)}" if isinstance(given, tuple) else f"a {type(given).__name__}"
    raise InputError(f"step returned {what}: expected {RETURNS}")


def all_over(given: Given) -> bool:
    """Whether no agent of several is left."""
    return bool(np.logical_or(np.asarray(given[2]), np.asarray(given[3])).all())


def check_given(given: Given, env: Any) -> None:
    """Refuse flags that are no truth values: one env has one end."""
    for name, flag in (("terminated", given[2]), ("truncated", given[3])):
        if not isinstance(flag, (bool, np.bool_, int, float)) and np.ndim(flag):
            raise InputError(
                f"step returned {name} as an array of {np.shape(flag)}: expected True or False; an env of "
                f"several agents has num_agents, one of several envs num_envs ({place_of(env)})"
            )


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
        begun = reset(seed=seed)
    except TypeError as error:
        if "seed" not in str(error):
            raise
        begun = reset()
    if inspect.isawaitable(begun):
        raise awaitable_error("reset returned", begun)
    return begun
