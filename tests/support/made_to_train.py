"""Envs that a trainer is tried on: parts, real numbers, agents that leave, workers that die."""

import os
import signal
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from pettingzoo import ParallelEnv

SEEN = {"a": np.zeros(2), "b": 2}

ODD: dict[str, Any] = {
    "sees nan": ({"a": np.full(2, np.nan), "b": 2}, 1.0, False, False, {}),
    "ends with inf": ({"a": np.full(2, np.inf), "b": 2}, 1.0, True, False, {}),
    "earns inf": (SEEN, np.inf, False, False, {}),
    "earns a googol": (SEEN, 10**400, False, False, {}),
    "earns words": (SEEN, "much", False, False, {}),
    "two ends": (SEEN, 1.0, np.array([True, False]), False, {}),
    "six": (SEEN, 1.0, False, False, {}, 6),
}
"""What the second step of an episode may return that nothing can be learnt from."""


class Echo(gymnasium.Env[Any, Any]):
    """Shows the last action, and what it is told to."""

    observation_space = Dict({"a": Box(-9, 9, (2,), np.float32), "b": Discrete(3, start=1)})
    action_space = Box(np.array([-2, 0], np.float32), np.array([2, np.inf], np.float32))

    def __init__(self, fault: str = "") -> None:
        self.fault, self.age = fault, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.age = 0
        return {"a": np.full(2, np.nan if self.fault == "begins as nan" else 0), "b": 1}, {}

    def step(self, action: Any) -> Any:
        self.age += 1
        if self.fault == "raises" and self.age == 2:
            raise ValueError("out of fuel")
        if self.fault == "dies" and self.age == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.age == 2 and self.fault in ODD:
            return ODD[self.fault]
        return {"a": action, "b": 2}, 1.0, False, self.age == 4, {}

    def close(self) -> None:
        if self.fault == "does not close":
            raise SystemExit("not now")


class Leaving(ParallelEnv[str, Any, Any]):
    """Three agents; the first leaves after two steps, the others are cut off after five, one of them done."""

    def __init__(self, unlike: bool = False) -> None:
        self.metadata, self.possible_agents = {"name": "leaving"}, ["a", "b", "c"]
        self.agents: list[str] = []
        self.unlike = unlike

    def observation_space(self, agent: str) -> Any:
        return Box(0, 9, (2 if self.unlike and agent == "c" else 1,), np.float32)

    def action_space(self, agent: str) -> Any:
        return Discrete(2)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents, self.age = list(self.possible_agents), 0
        return {agent: np.zeros(1, np.float32) for agent in self.agents}, {agent: {} for agent in self.agents}

    def step(self, actions: Any) -> Any:
        assert list(actions) == self.agents
        self.age += 1
        seen = {agent: np.full(1, self.age, np.float32) for agent in self.agents}
        ended = {agent: (agent, self.age) in (("a", 2), ("b", 5)) for agent in self.agents}
        cut = dict.fromkeys(self.agents, self.age == 5)
        rewards = {agent: 1.0 + actions[agent] for agent in self.agents}
        infos: dict[str, Any] = {agent: {} for agent in self.agents}
        self.agents = [agent for agent in self.agents if not ended[agent] and not cut[agent]]
        return seen, rewards, ended, cut, infos


def echo(fault: str = "") -> Echo:
    return Echo(fault)


def leaving(unlike: bool = False) -> Leaving:
    return Leaving(unlike)
