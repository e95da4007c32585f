"""A target, `sized_target.py:make`: its steps take what its size says, by a clock that only it moves."""

import math
from typing import Any

from support.clock import CLOCK

LAWS = {
    "n": lambda n: 1_000 * n,
    "nn": lambda n: n * n,
    "flat": lambda _: 5_000.0,
    "nlogn": lambda n: 100 * n * math.log(n + 1),
}


class Sized:
    """An env of one number, with two phases that it reports."""

    num_actions = 2

    def __init__(self, n: int, law: str) -> None:
        if n > 10_000:
            raise ValueError("n is too large")
        self.cost = LAWS[law](n)
        self.phases = {"rising": 0, "flat": 0}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        return 0, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        CLOCK.ns += round(self.cost)
        self.phases["rising"] += round(self.cost)
        self.phases["flat"] += 50_000
        return 0, 0.0, False, False, {}

    def phase_totals(self) -> dict[str, int]:
        return dict(self.phases)


def make(n: int = 10, law: str = "n", seed: int = 42) -> Sized:
    return Sized(int(n), law)
