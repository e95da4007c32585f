"""Acting: a policy of the user's that chooses actions while the clock runs."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.core.registry import names_callable
from hotloop.core.spans import span
from hotloop.envs import callables
from hotloop.envs.batch import Batch
from hotloop.envs.foreign.spec import STEP, raised
from hotloop.envs.subject import Subject, SubjectSpec

TAPE = "tape:"
POLICY, FORWARD, SELECT = "policy", "forward", "select"
"""Rows of the tree: choosing an action; and its two parts, where a policy has methods of these names."""

Choose = Callable[[Any], Any]
"""From an observation to an action, both as the subject gives and takes them."""


def is_live(policy: object) -> bool:
    """Whether a policy is somebody's callable rather than the name of a player or a tape."""
    return not isinstance(policy, str) or (names_callable(policy) and not policy.startswith(TAPE))


def load(policy: object, *, timed: bool = False) -> Choose:
    """The policy itself, with `timed` in spans: a function of observations, or an object with parts."""
    made = callables.find(policy) if isinstance(policy, str) else policy
    if isinstance(made, type):
        made = made()
    region: Callable[[str], Callable[[Choose], Choose]] = span if timed else (lambda _: lambda same: same)
    forward, select = getattr(made, FORWARD, None), getattr(made, SELECT, None)
    if callable(forward) and callable(select):
        score, pick = region(FORWARD)(forward), region(SELECT)(select)
        return region(POLICY)(lambda seen: pick(score(seen)))
    if not callable(made):
        raise InputError(
            f"the policy is a {type(made).__name__}: expected a function from observations to actions"
        )
    return region(POLICY)(made)


def name_of(policy: object) -> str:
    """What a record says of a policy."""
    return policy if isinstance(policy, str) else getattr(policy, "__qualname__", type(policy).__name__)


class Proxy:
    """A subject in front of another, the same in all that is not said below."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    @property
    def spec(self) -> SubjectSpec:
        return self._subject.spec

    @property
    def observation(self) -> Any:
        return observed(self._subject)

    def reset(self) -> None:
        self._subject.reset()

    def draw(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        return self._subject.draw(random, calls)

    def step(self, actions: Any) -> None:
        self._subject.step(actions)

    @property
    def counters(self) -> dict[str, int]:
        return self._subject.counters

    def answers(self) -> Mapping[str, NDArray[Any]]:
        return self._subject.answers()

    def phase_totals(self) -> dict[str, int]:
        return self._subject.phase_totals()

    def close(self) -> None:
        self._subject.close()


class Actor(Proxy):
    """A subject whose policy chooses each action in the call that steps it."""

    def __init__(self, subject: Subject, choose: Choose) -> None:
        super().__init__(subject)
        self._choose = choose

    def draw(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        """Nothing: what is handed to `step` is not looked at."""
        return [None] * calls

    def step(self, actions: Any) -> None:
        try:
            chosen = self._choose(observed(self._subject))
        except Exception as error:
            raise raised("the policy", error) from error
        self._subject.step(chosen)


class Watched(Proxy):
    """A subject with its step in a span, if it has none itself, that keeps what was played, if asked to."""

    def __init__(self, subject: Subject, *, keep: bool) -> None:
        super().__init__(subject)
        self.played: list[Any] = []
        step = span(STEP)(subject.step) if isinstance(subject, Batch) else subject.step

        def kept(actions: Any) -> None:
            self.played.append(copy(actions))
            step(actions)

        self.step = kept if keep else step  # type: ignore[method-assign]


def observed(subject: Subject) -> Any:
    """What a policy sees."""
    return subject.observations if isinstance(subject, Batch) else getattr(subject, "observation", None)
