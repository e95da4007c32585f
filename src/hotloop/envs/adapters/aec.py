"""Games of two players as PettingZoo's AEC envs: two agents, agent_0 and agent_1, one after the other.

An agent is shown what it saw when it last had to choose; before its first choice that is nothing, in zeros.
"""

from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.utils import seeding
from pettingzoo import AECEnv

from hotloop.core.errors import InputError
from hotloop.core.registry import find
from hotloop.core.world import Contest
from hotloop.envs.adapters import views
from hotloop.envs.adapters.views import EpisodeSeeds


class HotloopAECEnv(AECEnv[str, Any, Any]):  # type: ignore[misc]
    """One game of a world that declares a contest; the agent that must choose is the one selected."""

    def __init__(self, target: str, **given: Any) -> None:
        super().__init__()
        self._contest = contest_of(target)
        alone = {**self._contest.both_outside, **given}
        self._batch = views.open_batch(target, alone, num_envs=1, render_mode=None)
        spec = self._batch.spec
        self.metadata = {
            "name": spec.target.replace("/", "_"),
            "render_modes": [],
            "is_parallelizable": False,
        }
        self.render_mode = None
        self.possible_agents = [f"agent_{seat}" for seat in range(2)]
        self._seen = views.agent_observations(self._batch)
        space = views.observation_space(self._batch, self._seen, 2)
        self.observation_spaces = {agent: deepcopy(space) for agent in self.possible_agents}
        self.action_spaces = {agent: Discrete(spec.num_actions) for agent in self.possible_agents}
        self._seeds = EpisodeSeeds(1)
        self._random = np.random.default_rng()
        self._actions = np.zeros((1, 1), np.int32)

    def observation_space(self, agent: str) -> Any:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete[Any]:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin a game: the one of this seed, or the next after it."""
        if seed is not None:
            self._random, _ = seeding.np_random(seed)
        self._batch.reset(self._seeds.begin(np.zeros(1, np.int64), [seed], self._random))
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        empty = views.each(self._seen, lambda rows: np.zeros_like(rows[0, 0]))
        self._kept = {agent: deepcopy(empty) for agent in self.agents}
        self._look()

    def step(self, action: Any) -> None:
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self._actions[0, 0] = self._accept(action)
        batch = self._batch
        batch.step(self._actions)
        self._cumulative_rewards[agent] = 0.0
        paid = batch.infos[self._contest.seat_rewards][0].tolist()
        self.rewards = dict(zip(self.possible_agents, paid, strict=True))
        self.terminations = dict.fromkeys(self.agents, bool(batch.terminals[0]))
        self.truncations = dict.fromkeys(self.agents, bool(batch.truncations[0]))
        self._look()
        self._accumulate_rewards()

    def observe(self, agent: str) -> Any:
        return views.each(self._kept[agent], lambda row: row.copy())

    def action_masks(self) -> Any:
        """Which actions are legal for the agent selected, a copy."""
        masks = self._batch.masks
        return np.ones(self._batch.spec.num_actions, np.bool_) if masks is None else masks[0, 0].copy()

    def render(self) -> None:
        return None

    def close(self) -> None:
        self._batch.close()

    def _look(self) -> None:
        """Select the agent that must choose, and keep what it sees."""
        seat = int(self._batch.infos[self._contest.seat][0])
        self.agent_selection = agent = self.possible_agents[seat]
        self._kept[agent] = views.each(self._seen, lambda rows: rows[0, 0].copy())
        self.infos[agent] = {"action_mask": self.action_masks().astype(np.int8)}

    def _accept(self, action: Any) -> int:
        limit = self._batch.spec.num_actions
        if not isinstance(action, (int, np.integer)) or not 0 <= action < limit:
            raise InputError(f"action {action!r} does not fit: expected 0 to {limit - 1}")
        return int(action)


def contest_of(target: str) -> Contest:
    world = find(target).world
    if world.contest is None:
        raise InputError(f"{target} is no game against somebody: use parallel_env for it")
    return world.contest


def aec_env(target: str, **given: Any) -> HotloopAECEnv:
    """An AECEnv of a preset: `aec_env("cards/mirror", max_decisions=500)`."""
    return HotloopAECEnv(target, **given)
