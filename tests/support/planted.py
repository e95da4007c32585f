"""Two small environments, made again in other ways, some of which are wrong: what statistics must tell apart.

`way` is another way to the same law: other random numbers, another order of floating-point sums.
`fault` names what is planted.
"""

from typing import Any

import gymnasium
import numpy as np

STATES, ACTIONS = 200, 4

MAZE_FAULTS = ("transition", "reward_of_a_state", "ends", "slips", "start", "reward_noise")
CART_FAULTS = ("force", "reward_scale", "observation_scale", "stale", "reward_noise", "sign")


class Maze(gymnasium.Env[int, int]):
    """Two hundred states, a way from one to the next by each action, chances of slipping and ending."""

    observation_space = gymnasium.spaces.Discrete(STATES)
    action_space = gymnasium.spaces.Discrete(ACTIONS)

    def __init__(self, way: int = 0, fault: str = "") -> None:
        law = np.random.default_rng(7)
        self.next = law.integers(STATES, size=(STATES, ACTIONS))
        self.reward = law.normal(size=STATES)
        self.way, self.fault = way, fault
        if fault == "transition":
            self.next[17, 2] = (self.next[17, 2] + 1) % STATES
        if fault == "reward_of_a_state":
            self.reward[17] += 1.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        if seed is not None:
            self.random = np.random.default_rng([self.way, seed])
        self.at = int(self.random.integers(STATES // 2 if self.fault == "start" else STATES))
        return self.at, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        slip, end = self.random.random(2)
        slips = 0.15 if self.fault == "slips" else 0.1
        self.at = int(self.random.integers(STATES) if slip < slips else self.next[self.at, action])
        reward = float(self.reward[self.at])
        if self.fault == "reward_noise":
            reward *= 1 + 0.05 * self.random.normal()
        return self.at, reward, bool(end < (0.04 if self.fault == "ends" else 0.025)), False, {}


class Cart(gymnasium.Env[Any, int]):
    """A mass between two walls, pushed either way; its sums are made in one order or the other."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self, way: int = 0, fault: str = "", more: float = 0.0) -> None:
        self.way, self.fault = way, fault
        self.more = more
        """By which every return is larger."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            self.random = np.random.default_rng(seed if self.way < 2 else [self.way, seed])
        self.x, self.v = self.random.uniform(-0.05, 0.05, 2)
        self.steps = 0
        self.seen = self.observe()
        return self.seen, {}

    def observe(self) -> Any:
        scale = 1.05 if self.fault == "observation_scale" else 1.0
        return np.array([self.x * scale, self.v], np.float32)

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        push = (int(action) - 1) * (1.05 if self.fault == "force" else 1.0)
        if self.fault == "sign" and self.x > 0.3:
            push = -push
        parts = [0.3 * np.sin(3 * self.x), -0.1 * self.v, push]
        order = parts[::-1] if self.way else parts
        self.v += 0.05 * ((order[0] + order[1]) + order[2])
        self.x += 0.05 * self.v
        self.steps += 1
        reward = float(np.cos(self.x) - 0.01 * self.v * self.v)
        if self.fault == "reward_scale":
            reward *= 1.05
        if self.fault == "reward_noise":
            reward *= 1 + 0.05 * self.random.normal()
        if self.steps == 1:
            reward += self.more
        if not (self.fault == "stale" and self.random.random() < 0.05):
            self.seen = self.observe()
        return self.seen, reward, bool(abs(self.x) > 1), self.steps >= 100, {}


def maze(way: int = 0, fault: str = "") -> Maze:
    return Maze(way, fault)


def cart(way: int = 0, fault: str = "", more: float = 0.0) -> Cart:
    return Cart(way, fault, more)
