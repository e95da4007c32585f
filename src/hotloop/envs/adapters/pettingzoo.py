"""Our worlds as PettingZoo's: a ParallelEnv of any preset, its agents named agent_0, agent_1, ..."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.utils import seeding
from pettingzoo import ParallelEnv

from hotloop.core.errors import InputError
from hotloop.envs.adapters import facets
from hotloop.envs.adapters.seeds import EpisodeSeeds
from hotloop.envs.batch import OrderError


class HotloopParallelEnv(ParallelEnv[str, Any, int]):  # type: ignore[misc]
    """One env of a world; its agents live as long as their episode, and all end together."""

    def __init__(self, target: str, *, render_mode: str | None = None, **given: Any) -> None:
        self._batch = facets.open_batch(target, given, num_envs=1, render_mode=render_mode)
        spec = self._batch.spec
        if spec.has_empty_rows:
            raise InputError(
                f"{spec.target} has agents that come and go, which PettingZoo has no names for here"
            )
        self.metadata = {
            "name": spec.target.replace("/", "_"),
            "render_modes": facets.render_modes(self._batch),
            "render_fps": facets.RENDER_FPS,
            "is_parallelizable": True,
        }
        self.render_mode = render_mode
        self.possible_agents = [f"agent_{agent}" for agent in range(spec.agents)]
        self.agents: list[str] = []
        self._seen = facets.agent_observations(self._batch)
        space = facets.observation_space(self._batch, self._seen, 2)
        self.observation_spaces: dict[str, Any] = {agent: deepcopy(space) for agent in self.possible_agents}
        self.action_spaces: dict[str, Discrete[Any]] = {
            agent: Discrete(spec.num_actions) for agent in self.possible_agents
        }
        self._told = facets.infos_of(self._batch)
        self._told.pop("agent_rewards", None)
        self._seeds = EpisodeSeeds(1)
        self._random = np.random.default_rng()
        self._actions = np.zeros((1, spec.agents), np.int32)

    def observation_space(self, agent: str) -> Any:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete[Any]:
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Begin an episode: the one of this seed, or the next after it."""
        if seed is not None:
            self._random, _ = seeding.np_random(seed)
        self._batch.reset(self._seeds.begin(np.zeros(1, np.int64), [seed], self._random))
        self.agents = list(self.possible_agents)
        return self._observations(), self._infos()

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[
        dict[str, Any],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        if not self.agents:
            raise OrderError("step without a living agent: call reset() first")
        batch = self._batch
        self._actions[0] = self._accept(actions)
        batch.step(self._actions)
        ended, cut = bool(batch.terminals[0]), bool(batch.truncations[0])
        given = (
            self._observations(),
            dict(zip(self.agents, batch.rewards.reshape(-1).tolist(), strict=True)),
            dict.fromkeys(self.agents, ended),
            dict.fromkeys(self.agents, cut),
            self._infos(),
        )
        if ended or cut:
            self.agents = []
        return given

    def render(self) -> Any:
        return None if self.render_mode is None else self._batch.render(0)

    def close(self) -> None:
        self._batch.close()

    def _observations(self) -> dict[str, Any]:
        now = facets.each(self._seen, lambda rows: rows[0].copy())
        rows = range(len(self.possible_agents))
        return {
            agent: facets.each(now, lambda own, row=row: own[row])  # type: ignore[misc]
            for agent, row in zip(self.agents, rows, strict=True)
        }

    def _infos(self) -> dict[str, dict[str, Any]]:
        """To each agent its own row, and what is everyone's."""
        count = len(self.possible_agents)
        own: dict[str, Any] = {}
        shared: dict[str, Any] = {}
        for name, rows in self._told.items():
            row = rows[0].copy()
            (own if row.shape[:1] == (count,) else shared)[name] = row
        return {
            agent: {**shared, **{name: row[index] for name, row in own.items()}}
            for index, agent in enumerate(self.agents)
        }

    def _accept(self, actions: Mapping[str, Any]) -> list[int]:
        limit = self._batch.spec.num_actions
        try:
            chosen = [actions[agent] for agent in self.agents]
        except KeyError as missing:
            raise InputError(f"{missing.args[0]} has no action: give one to every living agent") from None
        for agent, action in zip(self.agents, chosen, strict=True):
            if not isinstance(action, (int, np.integer)) or not 0 <= action < limit:
                raise InputError(f"action {action!r} of {agent} does not fit: expected 0 to {limit - 1}")
        return chosen


def parallel_env(target: str, **given: Any) -> HotloopParallelEnv:
    """A ParallelEnv of a preset: `parallel_env("grid/toy", agents=8, max_steps=500)`."""
    return HotloopParallelEnv(target, **given)
