"""A target, `paced_target.py:make`: its steps take as long as they are told, and it misbehaves on request."""

from math import inf
from typing import Any

from support.clock import CLOCK

import hotloop
from hotloop.envs.batch import Batch

CALLS_A_ROUND = 2
"""Of 8 env-steps in a batch of 4, as the tests ask for."""


class Paced(Batch):
    """A grid of four envs and three agents."""

    def __init__(self, made: Batch, keys: dict[str, Any]) -> None:
        super().__init__(made._engine, made.spec)
        made.close()
        self.keys = keys
        self.calls = 0

    def step(self, actions: Any) -> None:
        super().step(actions)
        self.calls += 1
        CLOCK.ns += self.pace()
        if self.is_past("interrupt_us"):
            raise KeyboardInterrupt
        if self.calls == self.keys.get("break_at"):
            raise ZeroDivisionError("planted")
        if "end_every" in self.keys and self.calls % self.keys["end_every"] == 0:
            self.reset_many(range(self.spec.num_envs))

    def pace(self) -> int:
        ns = 1_000 * self.keys.get("us", 100)
        if (self.calls - 1) // CALLS_A_ROUND % 2:
            ns = round(ns * (1 + self.keys.get("jitter", 0)))
        return ns if self.is_past("slow_until_us", 0) else 2 * ns

    def is_past(self, moment: str, usually: float = inf) -> bool:
        """Whether the clock has reached a moment, which it may do long after another batch was made."""
        return CLOCK.ns >= 1_000 * self.keys.get(moment, usually)

    @property
    def counters(self) -> dict[str, int]:
        counted = super().counters
        steps = counted["env_steps"]
        counted["updates"] = steps - (steps // 3 if self.keys.get("skip_updates") else 0)
        if self.keys.get("drop_tokens"):
            counted["tokens"] = counted["tokens"] * 2 // 3
        if "unequal_us" in self.keys:
            mismatches = int(self.is_past("unequal_us"))
            counted |= {"shadow.comparisons": steps, "shadow.mismatches": mismatches}
        if self.keys.get("pretend"):
            counted |= {"native_steps": 0, "reference_steps": steps}
        return counted


def make(seed: int = 42, **keys: Any) -> Batch:
    return Paced(hotloop.make("grid/toy", num_envs=4, agents=3, seed=seed), keys)
