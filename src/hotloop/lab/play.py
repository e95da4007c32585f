"""Play: actions drawn before the clock starts, and a subject stepped through them under it."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.settings import by_role
from hotloop.core.spans import lap
from hotloop.envs.batch import Batch, Spec
from hotloop.envs.subject import Subject
from hotloop.envs.targets import make, open_target
from hotloop.lab import taping
from hotloop.lab.acting import TAPE, is_live, load, observed

Actions = Any
"""The actions of one call, as the subject takes them; for a batch a contiguous int32 array."""

RANDOM = "random"
FEWEST_BATCHES = 16
MOST_BYTES = 16 << 20
"""Of actions drawn at a time; a round that needs more goes through them again."""


class Play(Protocol):
    """Where a measurement gets its actions from."""

    policy: str
    """What a record says of it."""

    def draw(self, calls: int) -> Sequence[Actions]:
        """The actions of the next calls, to be cycled through where there are fewer."""

    def put_back(self, actions: Sequence[Actions]) -> None:
        """Take the last ones of a draw that were not played."""

    def close(self) -> None: ...


def play_of(policy: str, subject: Subject) -> Play:
    """The random play of a subject, or that of one of a batch's players."""
    if policy == RANDOM:
        return RandomPlay(subject)
    if policy.startswith(TAPE):
        return TapePlay(policy, taping.read(Path(policy.removeprefix(TAPE)), subject))
    if is_live(policy):
        choose = load(policy)
        return AheadPlay(reopen(subject), lambda ahead: choose(observed(ahead)), policy)
    if not isinstance(subject, Batch):
        raise InputError(
            f"{subject.spec.name} has no player {policy!r}: it is random, tape:FILE or module:callable"
        )
    return AheadPlay(reopen(subject), lambda ahead: ahead.choose(policy), policy)


class RandomPlay:
    """Uniformly random actions for one shape of batch, of those the world draws from; a seed decides them.

    Every round draws its own: the same actions round after round would push an agent the same way each
    time, until all of them stood at a wall.
    """

    policy = RANDOM

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._random = np.random.default_rng(subject.spec.seed)

    def draw(self, calls: int) -> Sequence[Actions]:
        """Draw the actions of a number of calls, or fewer of them to cycle through where they are large."""
        spec = self._subject.spec
        bytes_a_call = spec.num_envs * spec.agents * np.dtype(np.int32).itemsize
        batches = max(FEWEST_BATCHES, min(calls, MOST_BYTES // bytes_a_call))
        return self._subject.draw(self._random, batches)

    def put_back(self, actions: Sequence[Actions]) -> None:
        """Forget them: others are as random."""

    def close(self) -> None:
        """Nothing is held."""


class AheadPlay:
    """What somebody does who looks at the state: recorded ahead of the clock, replayed under it.

    A subject of its own, with the seeds of the measured one, is played and so is always in the state that
    the measured one comes to when it steps through the same actions.
    """

    def __init__(self, ahead: Subject, choose: Callable[[Any], Actions], player: str) -> None:
        self.policy = f"{player} (replayed tape)"
        self._choose = choose
        self._left: list[Actions] = []
        self._ahead = ahead
        self._ahead.reset()

    def draw(self, calls: int) -> Sequence[Actions]:
        """Exactly as many as asked for: such a tape cannot be cycled through."""
        while len(self._left) < calls:
            self._left.append(copy(self._choose(self._ahead)))
            self._ahead.step(self._left[-1])
        drawn, self._left = self._left[:calls], self._left[calls:]
        return drawn

    def put_back(self, actions: Sequence[Actions]) -> None:
        """Keep them for the next draw, since the measured subject has not seen them."""
        self._left = [*actions, *self._left]

    def close(self) -> None:
        self._ahead.close()


class TapePlay:
    """The actions of a tape, from its beginning; a run that is longer goes through it again."""

    def __init__(self, policy: str, actions: Sequence[Actions]) -> None:
        self.policy = policy
        self._actions = actions
        self._next = 0

    def draw(self, calls: int) -> Sequence[Actions]:
        drawn = [self._actions[(self._next + call) % len(self._actions)] for call in range(calls)]
        self._next = (self._next + calls) % len(self._actions)
        return drawn

    def put_back(self, actions: Sequence[Actions]) -> None:
        self._next = (self._next - len(actions)) % len(self._actions)

    def close(self) -> None:
        """Nothing is held."""


def reopen(subject: Subject) -> Any:
    """Another subject of the same workload."""
    spec = subject.spec
    if isinstance(spec, Spec):
        workload = by_role(spec.parameters, "workload") | by_role(spec.settings, "workload")
        return make(spec.target, **workload, num_envs=spec.num_envs)
    return open_target(spec.name, getattr(spec, "given", {}))


def repeat(actions: Sequence[Actions], calls: int) -> Iterator[Actions]:
    """Yield the actions of a number of calls, from the beginning again where they run out."""
    return islice(cycle(actions), calls)


def play(subject: Subject, actions: Sequence[Actions], calls: int) -> int:
    """Step a subject a number of times; returns the wall time in ns."""
    step = subject.step
    begin = now_ns()
    for chosen in repeat(actions, calls):
        step(chosen)
    return now_ns() - begin


def play_in_laps(subject: Subject, actions: Sequence[Actions], counted: Any) -> int:
    """Step a subject and log each turn with the resets so far; returns the wall time in ns."""
    step = subject.step
    begin = now_ns()
    lap(counted.resets)
    for chosen in repeat(actions, len(actions)):  # as the clean side does
        step(chosen)
        lap(counted.resets)
    return now_ns() - begin


@contextmanager
def no_collection() -> Iterator[bool]:
    """Keep the garbage collector out of what is measured; says whether it was on."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield was_on
    finally:
        if was_on:
            gc.enable()
