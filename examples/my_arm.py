"""An env with parts of an observation and real numbers for actions: `hotloop train my_arm.py:make`."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict

STEPS = 20
"""Of an episode."""


class Arm(gymnasium.Env[Any, Any]):
    """A hand on a table that is to be held at a goal; an action moves it by up to half a metre."""

    observation_space = Dict({"hand": Box(-3, 3, (2,), np.float32), "goal": Box(-1, 1, (2,), np.float32)})
    action_space = Box(-0.5, 0.5, (2,), np.float32)

    def _shown(self) -> dict[str, Any]:
        return {"hand": self._hand, "goal": self._goal}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._hand, self._goal = self.np_random.uniform(-1, 1, (2, 2)).astype(np.float32)
        self._age = 0
        return self._shown(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._hand = np.clip(self._hand + action, -3, 3).astype(np.float32)
        self._age += 1
        apart = float(np.linalg.norm(self._goal - self._hand))
        return self._shown(), -apart, False, self._age == STEPS, {}


def make() -> Arm:
    return Arm()
