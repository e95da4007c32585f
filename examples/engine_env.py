"""An env around the engine of engine.cpp, which says how long the phases of its steps took.

    hotloop profile examples/engine_env.py:make bodies=5000

The module is built as engine.cpp says, and found in the current folder. HOTLOOP_PROFILING=1 is set while the
side that is watched is made, so that the clean one has no clock in it.
"""

import os
from typing import Any

from engine import Engine


class Bodies:
    """An object with reset and step; what the engine reports is reported by the env."""

    num_actions = 3

    def __init__(self, bodies: int, length: int) -> None:
        self.engine = Engine(bodies, bool(os.environ.get("HOTLOOP_PROFILING")))
        self.age, self.length = 0, length
        self.phase_totals, self.counters = self.engine.phase_totals, self.engine.counters

    def reset(self) -> Any:
        self.age = 0
        self.engine.reset()
        return 0.0

    def step(self, action: Any) -> Any:
        self.age += 1
        return 0.0, self.engine.step(int(action)), self.age == self.length, {}


def make(bodies: int = 1_000, length: int = 500) -> Bodies:
    return Bodies(bodies, length)
