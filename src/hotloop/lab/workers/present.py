"""What only Hotloop itself can step, at a commit: the worker has it where the commit's Python has Hotloop."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.target import Target
from hotloop.envs.open import open_target
from hotloop.lab.validate.equal import shown

MOST_DRAWN = 1 << 12
"""Calls whose actions are made at a time; a turn that needs more goes through them again."""


class PresentSubject:
    """A model that plays itself, an env of PettingZoo, ...: a subject as the worker knows them."""

    def __init__(self, target: str, keys: Mapping[str, Any], seed: int) -> None:
        self.made = open_target(Target(target, dict(keys)))
        self.num_envs, self.agents = self.made.spec.num_envs, self.made.spec.agents
        self.step = self.made.step
        self._random = np.random.default_rng(seed)
        self.made.reset()

    def draw(self, calls: int) -> Sequence[Any]:
        return [*self.made.draw(self._random, min(calls, MOST_DRAWN))]

    def counters(self) -> dict[str, int]:
        return {name: int(count) for name, count in self.made.counters.items()}

    def answers(self) -> dict[str, NDArray[Any]]:
        unseen = self.made.unseen()
        return {name: rows for name, rows in shown(self.made).items() if name not in unseen}

    def wait(self) -> None:
        self.made.wait()
