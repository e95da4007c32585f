"""Environments with a step that is slow for a known reason."""

import gc
from time import sleep
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Stalling:
    """Pauses in one step after it was seeded; an episode has 50 steps."""

    num_actions = 3

    def __init__(self, at: int, seconds: float) -> None:
        self.at, self.seconds = at, seconds
        self.steps = self.age = 0

    def reset(self, seed: int | None = None) -> int:
        self.age = 0
        self.steps = self.steps if seed is None else 0
        return 0

    def step(self, action: int) -> tuple[int, float, bool, dict[str, int]]:
        self.steps += 1
        self.age += 1
        if self.steps == self.at:
            sleep(self.seconds)
        return self.steps * 3 + action, float(action), self.age == 50, {}


class Littering(Stalling):
    """Leaves cycles behind in every step, for the collector to find; in one step it calls it itself."""

    heap: list[list[object]]
    """What it holds until then, so that there is something to collect."""

    def step(self, action: int) -> tuple[int, float, bool, dict[str, int]]:
        for _ in range(40):
            cycle: list[object] = []
            cycle.append(cycle)
        if self.steps + 2 == self.at:
            self.heap = [[] for _ in range(50_000)]
            for each in self.heap:
                each.append(each)
        if self.steps + 1 == self.at:
            self.heap.append(self.heap)  # the whole of it is one cycle now
            del self.heap
            gc.collect()
        return super().step(action)


class Drifting(Stalling):
    """Gives back something that no seed decides."""

    lives = 0

    def step(self, action: int) -> tuple[int, float, bool, dict[str, int]]:
        Drifting.lives += 1
        _, reward, ended, info = super().step(action)
        return Drifting.lives, reward, ended, info


def make(at: int = 0, seconds: float = 0.0) -> Stalling:
    return Stalling(at, seconds)


def litter(at: int = 0) -> Stalling:
    return Littering(at, 0.0)


def drift() -> Stalling:
    return Drifting(0, 0.0)


def idle(seen: NDArray[Any]) -> NDArray[np.int32]:
    """A policy for one env of ours with one agent, which stands still."""
    return np.zeros((1, 1), np.int32)


def third(seen: int) -> int:
    """A policy that looks."""
    return seen % 3


def torch_policy(seen: object) -> int:
    """A policy that asks torch."""
    import torch

    return int(torch.ones(3).cumsum(0).argmax()) % 3
