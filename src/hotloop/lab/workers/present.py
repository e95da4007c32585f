"""What only Hotloop can step or train, at a commit: worker.py runs this by its path.

Where the commit has a Hotloop of its own, that one is imported here: it is asked only for what it knows.
"""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.settings import Target
from hotloop.envs.open import open_target

MOST_DRAWN = 1 << 12  # Calls whose actions are made at a time; a turn that needs more goes through them again


class PresentSubject:
    """A model that plays itself, an env of PettingZoo, ...: a subject as the worker knows them."""

    def __init__(self, target: str, keys: Mapping[str, Any], seed: int) -> None:
        self.made = open_by_name(Target(target, dict(keys)))
        getattr(self.made, "reseed", int)(seed)  # older commits have one seed for everything
        self.num_envs, self.agents = self.made.spec.num_envs, self.made.spec.agents
        self.step = self.made.step
        self._random = np.random.default_rng(seed)
        self.made.reset()

    def draw(self, calls: int) -> Sequence[Any]:
        return [*self.made.draw(self._random, min(calls, MOST_DRAWN))]

    def counters(self) -> dict[str, int]:
        return {name: int(count) for name, count in self.made.counters.items()}

    def answers(self) -> dict[str, NDArray[Any]]:
        from hotloop.lab.validate.equal import shown

        unseen = self.made.unseen()
        return {name: rows for name, rows in shown(self.made).items() if name not in unseen}

    def wait(self) -> None:
        self.made.wait()


def open_by_name(target: Target) -> Any:
    """Open a target, with players in its seats if its keys name them."""
    if not {"hero", "villain"} & target.keys.keys():
        return open_target(target)
    from hotloop.lab.measure.target import open_subject

    return open_subject(target, profile=False)


class Training(SimpleNamespace):
    """What is said of a training: not by what keys, since one commit may know some the other does not."""


class TrainingSubject:
    """A training, by the keys that were typed: a call is an update, which is as long as a turn has to be."""

    needs_run_in = False

    def __init__(self, target: str, keys: Mapping[str, Any], seed: int) -> None:
        from hotloop.lab.training.sides import TrainContender

        contender = TrainContender(Target(target, dict(keys)))
        self._side = contender.side("random")
        self.num_envs, self.agents = self._side.grain, contender.spec.agents
        self.made = Training(spec=SimpleNamespace(impl=contender.spec.impl), close=self._side.close)

    def draw(self, calls: int) -> Sequence[Any]:
        return [None] * calls

    def step(self, _: None) -> None:
        self._side.turn(self.num_envs)

    def counters(self) -> dict[str, int]:
        return dict(self._side.counters())

    def answers(self) -> dict[str, Any]:
        """Nothing: two trainings are not compared by their bytes."""
        return {}

    def wait(self) -> None:
        """An update is over when it returns."""
