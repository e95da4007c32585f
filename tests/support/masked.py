"""Envs that raise where an action is not legal, and say in their own ways which ones are."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete
from pettingzoo import ParallelEnv

ACTIONS = 5


class Strict(gymnasium.Env[Any, Any]):
    """Only the actions `age` and `age + 1` are legal, modulo five; an episode has seven steps."""

    observation_space = Box(0, 9, (1,), np.float32)
    action_space = Discrete(ACTIONS)

    def __init__(self, says: str = "info") -> None:
        self.says, self.age = says, 0
        self.taken: list[int] = []
        if says == "method":
            self.action_masks = self._mask
        if says == "observation":
            parts = {"seen": Box(0, 9, (1,), np.float32), "action_mask": Box(0, 1, (ACTIONS,), np.int8)}
            self.observation_space = Dict(parts)  # type: ignore[assignment]

    def _mask(self) -> Any:
        mask = np.zeros(ACTIONS, np.int8)
        mask[[self.age % ACTIONS, (self.age + 1) % ACTIONS]] = 1
        return mask

    def _shown(self) -> tuple[Any, dict[str, Any]]:
        seen = np.array([self.age], np.float32)
        if self.says == "observation":
            return {"seen": seen, "action_mask": self._mask()}, {}
        return seen, {"action_mask": self._mask()} if self.says == "info" else {}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.age = 0
        return self._shown()

    def step(self, action: Any) -> Any:
        if not self._mask()[action]:
            raise ValueError(f"illegal move {action}")
        self.taken.append(int(action))
        self.age += 1
        seen, info = self._shown()
        return seen, float(action), self.age == 7, False, info


class Parts(Strict):
    """An action has two parts, whose masks are told one behind the other."""

    action_space = MultiDiscrete([2, 3])  # type: ignore[assignment]

    def _mask(self) -> Any:
        mask = np.zeros(ACTIONS, np.int8)
        mask[[self.age % 2, 2 + self.age % 3]] = 1
        return mask

    def step(self, action: Any) -> Any:
        mask = self._mask()
        if not (mask[:2][action[0]] and mask[2:][action[1]]):
            raise ValueError(f"illegal action {action}")
        self.age += 1
        seen, info = self._shown()
        return seen, 0.0, self.age == 7, False, info


class Both(ParallelEnv[str, Any, Any]):
    """Two agents at once; the mask of `b` is told by its infos, that of `a` by its observation."""

    def __init__(self) -> None:
        self.metadata, self.possible_agents = {"name": "both"}, ["a", "b"]
        self.agents: list[str] = []
        self.envs = {"a": Strict("observation"), "b": Strict("info")}

    def observation_space(self, agent: str) -> Any:
        return self.envs[agent].observation_space

    def action_space(self, agent: str) -> Any:
        return self.envs[agent].action_space

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents = list(self.possible_agents)
        shown = {agent: env.reset(seed=seed) for agent, env in self.envs.items()}
        return tuple({agent: pair[part] for agent, pair in shown.items()} for part in (0, 1))

    def step(self, actions: dict[str, Any]) -> Any:
        given = {agent: env.step(actions[agent]) for agent, env in self.envs.items()}
        if given["a"][2]:
            self.agents = []
        return tuple({agent: five[part] for agent, five in given.items()} for part in range(5))


def make(says: str = "info") -> Strict:
    return Strict(says)


def silent() -> Strict:
    """It refuses, and says nothing of what is legal."""
    return Strict("nothing")


def wrapped() -> Any:
    return gymnasium.wrappers.TimeLimit(Strict("method"), 50)


def parts() -> Parts:
    return Parts()


def both() -> Both:
    return Both()


def lowest(observation: Any, action_mask: Any) -> int:
    return int(np.flatnonzero(action_mask)[0])


class Strange(Strict):
    """Only action 4 is legal, of which nobody is told; whoever plays something else is found out."""

    def __init__(self) -> None:
        super().__init__("nothing")

    def _mask(self) -> Any:
        return np.array([0, 0, 0, 0, 1])


def strange() -> Strange:
    return Strange()


def fourth(observation: Any) -> int:
    return 4
