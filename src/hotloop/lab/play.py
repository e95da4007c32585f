"""Random play: actions drawn before the clock starts, and a batch stepped through them under it."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.envs.batch import Batch

Actions = NDArray[np.int32]
"""The actions of one batch call, contiguous."""

POLICY = "random"
FEWEST_BATCHES = 16
MOST_BYTES = 16 << 20
"""Of actions drawn at a time; a round that needs more goes through them again."""


class RandomPlay:
    """Uniformly random actions for one shape of batch, the same for the same seed.

    Every round draws its own: the same actions round after round would push an agent the same way each
    time, until all of them stood at a wall.
    """

    def __init__(self, batch: Batch) -> None:
        spec = batch.spec
        self._shape = (spec.num_envs, spec.agents)
        self._num_actions = spec.num_actions
        self._random = np.random.default_rng(spec.settings.seed)

    def draw(self, calls: int) -> Sequence[Actions]:
        """Draw the actions of a number of calls, or fewer of them to cycle through where they are large."""
        bytes_a_call = self._shape[0] * self._shape[1] * np.dtype(np.int32).itemsize
        batches = max(FEWEST_BATCHES, min(calls, MOST_BYTES // bytes_a_call))
        return list(self._random.integers(self._num_actions, size=(batches, *self._shape), dtype=np.int32))


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
