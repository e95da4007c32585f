"""Play: actions drawn before the clock starts, and a batch stepped through them under it."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.core.settings import by_role
from hotloop.envs.batch import Batch
from hotloop.envs.targets import make

Actions = NDArray[np.int32]
"""The actions of one batch call, contiguous."""

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


def play_of(policy: str, batch: Batch) -> Play:
    """The random play of a batch, or that of one of its players."""
    return RandomPlay(batch) if policy == RANDOM else TapedPlay(batch, policy)


class RandomPlay:
    """Uniformly random actions for one shape of batch, of those the world draws from; a seed decides them.

    Every round draws its own: the same actions round after round would push an agent the same way each
    time, until all of them stood at a wall.
    """

    policy = RANDOM

    def __init__(self, batch: Batch) -> None:
        spec = batch.spec
        self._shape = (spec.num_envs, spec.agents)
        self._num_actions = spec.drawn_actions
        self._random = np.random.default_rng(spec.settings.seed)

    def draw(self, calls: int) -> Sequence[Actions]:
        """Draw the actions of a number of calls, or fewer of them to cycle through where they are large."""
        bytes_a_call = self._shape[0] * self._shape[1] * np.dtype(np.int32).itemsize
        batches = max(FEWEST_BATCHES, min(calls, MOST_BYTES // bytes_a_call))
        return list(self._random.integers(self._num_actions, size=(batches, *self._shape), dtype=np.int32))

    def put_back(self, actions: Sequence[Actions]) -> None:
        """Forget them: others are as random."""

    def close(self) -> None:
        """Nothing is held."""


class TapedPlay:
    """What a player does who looks at the state: recorded ahead of the clock, replayed under it.

    A batch of its own, with the seeds of the measured one, is played by the player and so is always in
    the state that the measured batch comes to when it steps through the same actions.
    """

    def __init__(self, batch: Batch, player: str) -> None:
        spec = batch.spec
        self.policy = f"{player} (replayed tape)"
        self._player = player
        self._left: list[Actions] = []
        self._ahead = make(
            spec.target,
            **by_role(spec.parameters, "workload"),
            **by_role(spec.settings, "workload"),
            num_envs=spec.num_envs,
        )
        self._ahead.reset()

    def draw(self, calls: int) -> Sequence[Actions]:
        """Exactly as many as asked for: a tape cannot be cycled through."""
        while len(self._left) < calls:
            self._left.append(self._ahead.choose(self._player).copy())
            self._ahead.step(self._left[-1])
        drawn, self._left = self._left[:calls], self._left[calls:]
        return drawn

    def put_back(self, actions: Sequence[Actions]) -> None:
        """Keep them for the next draw, since the measured batch has not seen them."""
        self._left = [*actions, *self._left]

    def close(self) -> None:
        self._ahead.close()


def repeat(actions: Sequence[Actions], calls: int) -> Iterator[Actions]:
    """Yield the actions of a number of calls, from the beginning again where they run out."""
    return islice(cycle(actions), calls)


def play(batch: Batch, actions: Sequence[Actions], calls: int) -> int:
    """Step a batch a number of times; returns the wall time in ns."""
    step = batch.step
    begin = now_ns()
    for chosen in repeat(actions, calls):
        step(chosen)
    return now_ns() - begin


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the garbage collector out of what is measured."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
