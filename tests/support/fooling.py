"""Environments that try to fool a comparison, each in one way; `fooling.py:honest` is what they pose as."""

import random
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from time import sleep
from typing import Any

import numpy as np

Step = tuple[Any, float, bool, bool, dict[str, Any]]


class Honest:
    """A walk that draws from a generator of its own; an episode has 40 steps."""

    num_actions = 3

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.age = self.steps = 0
        self.at = np.zeros(2)

    def reset(self, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            self.rng, self.steps = np.random.default_rng(seed), 0
        self.age, self.at = 0, np.zeros(2)
        return self.at.copy(), {"began": True}

    def step(self, action: int) -> Step:
        self.age += 1
        self.steps += 1
        self.at = self.at + self.rng.random(2) * int(action)
        return self.at.copy(), float(self.at[0]), self.age == 40, False, self.infos()

    def infos(self) -> dict[str, Any]:
        return {"age": self.age, "where": {"name": f"cell {self.age % 7}", "xy": self.at.copy()}}


class Lazy(Honest):
    """Does nothing any more from its 600th step on."""

    def step(self, action: int) -> Step:
        if self.steps < 600:
            return super().step(action)
        self.steps += 1
        return self.at, 0.0, False, False, {}


class MovesOn(Honest):
    """Honest, but for a map that is another one at every reset, whatever its seed."""

    maps = 0

    def reset(self, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        self.maps += 1
        return super().reset(seed)

    def infos(self) -> dict[str, Any]:
        return {**super().infos(), "map": self.maps}


class Misnaming(Honest):
    """Says another name in a nested info, which no reset gives."""

    def infos(self) -> dict[str, Any]:
        said = super().infos()
        said["where"]["name"] += "!" if self.age == 30 else ""
        return said


class Counting(Honest):
    """Has a number in an info that is off by one."""

    def infos(self) -> dict[str, Any]:
        return super().infos() | {"age": self.age + (self.age == 30)}


class Flagging(Honest):
    """Answers with numbers where there were truth values."""

    def step(self, action: int) -> Any:
        seen, reward, ended, cut, info = super().step(action)
        return seen, reward, int(ended), cut, info


class Drawing(Honest):
    """Draws once more than it needs to at the end of an episode, after which all is as it was for long."""

    def step(self, action: int) -> Step:
        given = super().step(action)
        if self.steps == 450:
            self.rng.bit_generator.state = np.random.default_rng(9).bit_generator.state
        return given


class Stamped(Honest):
    """Has a number in its infos that is never the same twice."""

    def infos(self) -> dict[str, Any]:
        return {**super().infos(), "when": random.SystemRandom().random()}

    def reset(self, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        return super().reset(seed)[0], {"when": random.SystemRandom().random()}


class Chancy(Honest):
    """Is not decided by its seed."""

    def step(self, action: int) -> Step:
        seen, _, ended, cut, info = super().step(action)
        return seen, random.SystemRandom().random(), ended, cut, info


class Opaque(Honest):
    """Has something in its infos that nobody can compare."""

    def infos(self) -> dict[str, Any]:
        return super().infos() | {"engine": object()}


class Grabbing:
    """Takes arrays of actions and changes them in place; what it was given decides what it answers."""

    num_actions = 3

    def __init__(self, *, grabs: bool) -> None:
        self.grabs = grabs
        self.action_space = Pairs()

    def reset(self, seed: int | None = None) -> tuple[int, dict[str, Any]]:
        return 0, {}

    def step(self, action: Any) -> Step:
        answer = int(action.sum())
        if self.grabs:
            action[:] = 0
        return answer, float(answer), False, False, {}


class Pairs:
    """A space of pairs of numbers."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)

    def seed(self, seed: int | None = None) -> None:
        self._random = np.random.default_rng(seed)

    def sample(self) -> Any:
        return self._random.integers(1, 5, size=2)


class Pooling(Honest):
    """Lets a thread do the work after its step has returned."""

    pool = ThreadPoolExecutor(1)
    block = bytes(300_000)

    def step(self, action: int) -> Step:
        given = super().step(action)
        if self.pool._work_queue.qsize() < 200:  # it falls behind, but ends with the tests
            self.pool.submit(sha256, self.block)
        return given


class Slow(Honest):
    """Takes long, and counts the steps of all."""

    made = 0

    def step(self, action: int) -> Step:
        Slow.made += 1
        sleep(0.2)
        return super().step(action)


class Littering(Honest):
    """Leaves a cycle behind in every step, each of a kilobyte."""

    def step(self, action: int) -> Step:
        cycle: list[Any] = [bytes(1_000)]
        cycle.append(cycle)
        return super().step(action)


def stamped() -> Any:
    return Stamped()


def moves_on() -> Any:
    return MovesOn()


def honest() -> Honest:
    return Honest()


def lazy() -> Honest:
    return Lazy()


def misnaming() -> Honest:
    return Misnaming()


def counting() -> Honest:
    return Counting()


def flagging() -> Honest:
    return Flagging()


def drawing() -> Honest:
    return Drawing()


def chancy() -> Honest:
    return Chancy()


def opaque() -> Honest:
    return Opaque()


def grabbing() -> Grabbing:
    return Grabbing(grabs=True)


def polite() -> Grabbing:
    return Grabbing(grabs=False)


def pooling() -> Honest:
    return Pooling()


def slow() -> Honest:
    return Slow()


def littering() -> Honest:
    return Littering()
