"""Envs that say how long the phases of their steps took, in the ways there are; the numbers are made up."""

from typing import Any

import gymnasium
from support.theirs import Doubled, Env

PHYSICS, OBSERVE = 300, 100


class Timing:
    """Of the last step."""

    total_ns, push_ns, observe_ns = 450, PHYSICS, OBSERVE


class ByStep(Env):
    """Known only after the first step, as a property."""

    @property
    def step_timing(self) -> Timing:
        return self.timing

    def step(self, action: Any) -> Any:
        self.timing = Timing()
        return super().step(action)


class InAll(Env):
    """Counts up from the beginning, its resets too."""

    def __init__(self, updates: int = 3, slower: int = 1) -> None:
        super().__init__()
        self.totals, self.updates, self.done, self.slower = {"push": 0, "observe": 0}, updates, 0, slower

    def reset(self, **given: Any) -> Any:
        self.totals["push"] += 1_000_000
        return super().reset(**given)

    def step(self, action: Any) -> Any:
        self.totals["push"] += PHYSICS * self.slower
        self.totals["observe"] += OBSERVE
        self.done += self.updates
        return super().step(action)

    def phase_totals(self) -> dict[str, int]:
        return dict(self.totals)

    def counters(self) -> dict[str, int]:
        return {"updates": self.done, "native_steps": 0}


class Behind(Env):
    """Says nothing itself; something behind it does."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = InAll()

    def step(self, action: Any) -> Any:
        self.engine.step(action)
        return super().step(action)


def by_step() -> Any:
    return gymnasium.wrappers.TimeLimit(Doubled(ByStep()), 1_000)


def in_all(updates: int = 3, slower: int = 1) -> Any:
    return gymnasium.wrappers.TimeLimit(InAll(updates, slower), 1_000)


def behind() -> Behind:
    return Behind()


def engine(env: Any) -> Any:
    return env.engine


def last_step(env: Any) -> Any:
    return {"push": PHYSICS, "a/b": OBSERVE}
