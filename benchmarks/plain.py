"""Environments of plain Python and of NumPy, with `reset` and `step` and nothing else: targets to compare."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Step = tuple[Any, float, bool, bool, dict[str, Any]]

CELLS = 12
EPISODE = 200


class Walk:
    """A token on a square of cells, which pays on its way to a corner."""

    num_actions = 4

    def __init__(self) -> None:
        self.at = (0, 0)
        self.age = 0

    def reset(self, seed: int | None = None) -> tuple[tuple[int, int], dict[str, Any]]:
        self.age, self.at = 0, ((seed or 0) % CELLS, 0)
        return self.at, {}

    def step(self, action: int) -> Step:
        across, down = ((1, 0), (-1, 0), (0, 1), (0, -1))[int(action)]
        x, y = (self.at[0] + across) % CELLS, (self.at[1] + down) % CELLS
        self.at, self.age = (x, y), self.age + 1
        return self.at, (x + y) / CELLS, self.age >= EPISODE, False, {"age": self.age}


class Field:
    """Heat that spreads over a plane and is fed where the action says."""

    num_actions = 16

    def __init__(self) -> None:
        self.heat: NDArray[np.float64] = np.zeros((16, 16))
        self.random = np.random.default_rng(0)
        self.age = 0

    def reset(self, seed: int | None = None) -> tuple[NDArray[np.float64], dict[str, Any]]:
        if seed is not None:
            self.random = np.random.default_rng(seed)
        self.heat, self.age = self.random.random((16, 16)), 0
        return self.heat.copy(), {}

    def step(self, action: int) -> Step:
        self.heat[int(action)] += 0.1
        around = np.roll(self.heat, 1, 0) + np.roll(self.heat, -1, 0) + np.roll(self.heat, 1, 1)
        self.heat = 0.7 * self.heat + 0.09 * around
        self.age += 1
        return self.heat.copy(), float(self.heat[0, 0]), self.age >= EPISODE, False, {}


def walk() -> Walk:
    return Walk()


def field() -> Field:
    return Field()
