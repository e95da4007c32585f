"""An env with a region in a span, a faster version of it, and a policy in two parts."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

import hotloop


class Env(gymnasium.Env[Any, Any]):
    observation_space = Box(0.0, 1.0, (8,), np.float32)
    action_space = Discrete(3)

    def __init__(self, rays: int = 40) -> None:
        self.rays, self.age = rays, 0

    def _rays(self) -> list[float]:
        return [sum(i * j % 7 for j in range(20)) % 11 / 11 for i in range(self.rays)]

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.age = 0
        return np.array(self._rays()[:8], np.float32), {}

    def step(self, action: Any) -> Any:
        with hotloop.span("physics"):
            self.age += 1
        return np.array(self._rays()[:8], np.float32), 1.0, self.age == 100, False, {}


def make(rays: int = 40) -> Env:
    return Env(rays)


def faster() -> Env:
    """Cast only the rays that are seen: the outputs stay the same."""
    return Env(rays=8)


class Policy:
    """Score, then pick: two rows of the tree."""

    def forward(self, observation: Any) -> Any:
        return observation @ np.ones((8, 3), np.float32)

    def select(self, scores: Any) -> int:
        return int(scores.argmax())
