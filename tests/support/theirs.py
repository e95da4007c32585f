"""Environments, policies and mistakes as users write them."""

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AsyncVectorEnv

import hotloop

LENGTH = 10
"""Steps of an episode."""


class Env(gymnasium.Env[Any, Any]):
    """Counts up; one episode has ten steps."""

    observation_space = Box(-100, 100, (3,), np.float32)
    action_space = Discrete(4)

    def __init__(self, work: int = 0) -> None:
        self.work = work
        self.age = 0

    def _encode(self) -> Any:
        for _ in range(self.work):
            math.sqrt(2.0)
        return np.full(3, self.age, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.age = 0
        return self._encode(), {"age": 0}

    def step(self, action: Any) -> Any:
        with hotloop.span("physics"):
            self.age += 1
        return self._encode(), float(action), self.age == LENGTH, False, {"age": self.age}


class Doubled(gymnasium.RewardWrapper[Any, Any]):
    """A wrapper that has its step from Gymnasium."""

    def reward(self, reward: Any) -> Any:
        return 2 * reward


class Plain:
    """No library at all: reset and step, and the old four values."""

    num_actions = 3

    def __init__(self) -> None:
        self.age = 0

    def reset(self) -> int:
        self.age = 0
        return self.age

    def step(self, action: int) -> tuple[int, float, bool, dict[str, Any]]:
        self.age += 1
        return self.age, 1.0, self.age == LENGTH, {}


class Faulty(Env):
    """Breaks what its interface promises, in the way it is told."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault

    def step(self, action: Any) -> Any:
        seen, reward, ended, cut, info = super().step(action)
        match self.fault:
            case "nan":
                seen[1] = np.nan
            case "reward":
                reward = math.nan
            case "outside":
                seen[0] = 1_000
            case "shape":
                seen = np.zeros(5, np.float32)
            case "tuple":
                return seen, reward
            case "raises" if self.age == 3:
                raise KeyError("no such cell")
        return seen, reward, ended, cut, info


class Parts(Env):
    """Sees in two parts."""

    observation_space = Dict({"near": Box(0, 9, (2,), np.float32), "far": Box(0, 9, (1,), np.float32)})

    def _encode(self) -> Any:
        return {"near": np.zeros(2, np.float32), "far": np.zeros(1, np.float32)}


def make(work: int = 0) -> Env:
    return Env(work)


def wrapped() -> Any:
    return Doubled(Doubled(Doubled(Env())))


def slow_encoder() -> Env:
    return Env(work=3_000)


def plain() -> Plain:
    return Plain()


def faulty(fault: str) -> Faulty:
    return Faulty(fault)


def parts() -> Parts:
    return Parts()


def uneven() -> AsyncVectorEnv:
    """The last of three workers has most to do."""
    return AsyncVectorEnv([lambda work=work: Env(work) for work in (0, 0, 60_000)])


def ours(agents: int = 3) -> Any:
    return hotloop.make("grid/toy", agents=agents, num_envs=4)


def nothing() -> None:
    return None


def needs(size: int) -> Env:
    return Env(size)


def policy(seen: Any) -> int:
    return int(seen[0]) % 4


def bad_policy(seen: Any) -> int:
    raise RuntimeError("no idea")


class TwoParts:
    """A policy whose parts are timed apart."""

    def forward(self, seen: Any) -> Any:
        return seen * 2

    def select(self, scores: Any) -> int:
        return int(scores[0]) % 4
