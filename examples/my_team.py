"""A parallel env of PettingZoo whose agents leave when they are done: `hotloop train my_team.py:make`."""

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from pettingzoo import ParallelEnv

STEPS = 24
"""Of an episode at most."""


class Team(ParallelEnv[str, Any, int]):
    """Walkers on a line; each has a door, and is gone when it has reached it."""

    metadata = {"name": "walkers"}  # noqa: RUF012 - as PettingZoo has it

    def __init__(self, size: int = 3, doors: int = 6) -> None:
        self.possible_agents = [f"walker_{number}" for number in range(size)]
        self.agents: list[str] = []
        self._doors = doors
        self._random = np.random.default_rng()

    def observation_space(self, agent: str) -> Box:
        return Box(-2, 2, (2,), np.float32)

    def action_space(self, agent: str) -> Discrete[np.int64]:
        return Discrete(3)

    def _shown(self) -> dict[str, Any]:
        return {
            agent: np.array([self._at[agent], self._door[agent]], np.float32) / self._doors
            for agent in self.agents
        }

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        if seed is not None:
            self._random = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        self._at = dict.fromkeys(self.agents, 0)
        self._door = {
            agent: int(self._random.choice([-1, 1]) * self._random.integers(1, self._doors + 1))
            for agent in self.agents
        }
        self._age = 0
        return self._shown(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, int]) -> Any:
        self._age += 1
        for agent, action in actions.items():
            self._at[agent] += int(action) - 1
        there = {agent: self._at[agent] == self._door[agent] for agent in self.agents}
        late = dict.fromkeys(self.agents, self._age == STEPS)
        rewards = {agent: 1.0 if there[agent] else -0.05 for agent in self.agents}
        shown, infos = self._shown(), {agent: {} for agent in self.agents}
        self.agents = [agent for agent in self.agents if not there[agent] and not late[agent]]
        return shown, rewards, there, late, infos


def make(size: int = 3, doors: int = 6) -> Team:
    return Team(size, doors)
