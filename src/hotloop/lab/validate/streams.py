"""The random numbers of the whole process, which several sides in one process would take from each other.

A simulator that draws from `random` or `numpy.random` themselves has its own generators when it runs alone.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from hotloop.envs.subject import Subject

FOREIGN = "foreign"


class Streams:
    """What each side would find in them if it were alone; all begin with what is there now."""

    def __init__(self, sides: Sequence[Subject]) -> None:
        begin = taken()
        self._of = {id(side): begin for side in sides if side.spec.impl == FOREIGN}

    @contextmanager
    def of(self, side: Subject) -> Iterator[None]:
        """Let one side draw from its own; ours draw from none of them."""
        if id(side) not in self._of:
            yield
            return
        put(self._of[id(side)])
        try:
            yield
        finally:
            self._of[id(side)] = taken()


def taken() -> tuple[Any, Any]:
    return random.getstate(), np.random.get_state(legacy=False)  # noqa: NPY002 - theirs


def put(states: tuple[Any, Any]) -> None:
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002 - theirs
