"""The random numbers of the whole process, which several sides in one process would take from each other.

A simulator that draws from `random`, `numpy.random` or torch themselves has its own generators when it runs
alone.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from hotloop.envs.subject import Subject

FOREIGN = "foreign"


class Streams:
    """What each side would find in them if it were alone; all begin with what is there now, or a seed."""

    def __init__(self, sides: Sequence[Subject], seed: int | None = None) -> None:
        begin = taken() if seed is None else begun(seed)
        self._of = {
            id(side): begin
            for side in sides
            if side.spec.impl == FOREIGN and not getattr(side, "keeps_random_numbers", False)
        }

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


States = tuple[Any, Any, Any]  # Of `random`, of NumPy, and of torch; None if torch is not loaded


def begun(seed: int) -> States:
    """Return what the streams are from a seed on; they stay as they are."""
    now = taken()
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - theirs
    if (generator := torch_generator()) is not None:
        generator.manual_seed(seed)
    begin = taken()
    put(now)
    return begin


def taken() -> States:
    generator = torch_generator()
    of_torch = None if generator is None else generator.get_state()
    return random.getstate(), np.random.get_state(legacy=False), of_torch  # noqa: NPY002 - theirs


def put(states: States) -> None:
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002 - theirs
    if states[2] is not None:
        torch_generator().set_state(states[2])


def torch_generator() -> Any:
    """Return torch's own generator on the host; None if torch is not loaded."""
    return getattr(sys.modules.get("torch"), "default_generator", None)
