"""Our worlds as PettingZoo's: a ParallelEnv of any preset, its agents named agent_0, agent_1, ...

Where agents come and go, each is named by its type and its number, which no other has in its episode.

Games of two players are AEC envs, too: agent_0 and agent_1, one after the other. An agent is shown what it
saw when it last had to choose; before its first choice that is nothing, in zeros.
"""

from collections.abc import Collection, Mapping
from copy import deepcopy
from operator import itemgetter
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.utils import seeding
from pettingzoo import AECEnv, ParallelEnv

from hotloop.core.errors import InputError
from hotloop.core.registry import find
from hotloop.envs.adapters import views
from hotloop.envs.adapters.views import EpisodeSeeds
from hotloop.envs.batch import Batch, OrderError

MAX_BIRTHS = 1_000  # Default per episode if agents come and go: PettingZoo wants all names beforehand


class HotloopParallelEnv(views.BatchAdapter, ParallelEnv[str, Any, int]):  # type: ignore[misc]
    """One env of a world; its agents live as long as their episode, unless the world ends their lives."""

    def __init__(self, target: str, *, render_mode: str | None = None, **given: Any) -> None:
        self._batch = open_named(target, given, render_mode)
        spec = self._batch.spec
        self.metadata = {
            "name": spec.target.replace("/", "_"),
            "render_modes": views.render_modes(self._batch),
            "render_fps": views.RENDER_FPS,
            "is_parallelizable": True,
        }
        self.render_mode = render_mode
        everyone = [f"agent_{agent}" for agent in range(spec.agents)]
        self.possible_agents = list(spec.layout.names) if spec.has_empty_rows else everyone
        self._rows: dict[str, int] = {}
        """Living agents to their rows."""
        self._seen = views.agent_observations(self._batch)
        space = views.observation_space(self._batch, self._seen, 2)
        self.observation_spaces: dict[str, Any] = {
            agent: space if spec.has_empty_rows else deepcopy(space) for agent in self.possible_agents
        }
        self.action_spaces: dict[str, Discrete[Any]] = {
            agent: Discrete(spec.num_actions) for agent in self.possible_agents
        }
        self._told = views.infos_of(self._batch)
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
        self._rows = self._living()
        return self._observations(self._rows), self._infos(self._rows)

    @property
    def agents(self) -> list[str]:
        """The living agents."""
        return list(self._rows)

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[
        dict[str, Any],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Step all agents; agents born in this step are included in the result."""
        if not self._rows:
            raise OrderError("step without a living agent: call reset() first")
        batch, acted = self._batch, self._rows
        self._actions[0, list(acted.values())] = self._accept(actions)
        batch.step(self._actions)
        ended, cut = bool(batch.terminals[0]), bool(batch.truncations[0])
        self._rows = {} if ended or cut else self._living()
        told = acted | self._rows
        gone = self._gone(acted)
        rewards = batch.rewards.reshape(-1)
        return (
            self._observations(told, gone),
            {agent: float(rewards[row]) if agent in acted else 0.0 for agent, row in told.items()},
            {agent: agent in gone for agent in told},
            {agent: cut and agent not in gone for agent in told},
            self._infos(told),
        )

    def _gone(self, acted: Mapping[str, int]) -> set[str]:
        """Return the agents that acted and died in it."""
        batch = self._batch
        if batch.terminals[0]:
            return set(acted)
        if not batch.spec.has_empty_rows:
            return set()
        return {agent for agent, row in acted.items() if batch.infos["died"][0, row]}

    def _living(self) -> dict[str, int]:
        """Return the living agents with the row of each."""
        spec, infos = self._batch.spec, self._batch.infos
        if not spec.has_empty_rows:
            return {agent: row for row, agent in enumerate(self.possible_agents)}
        types, breeds, serials = spec.layout.types, infos["breeds"][0], infos["serials"][0]
        rows = np.flatnonzero(infos["alive"][0]).tolist()
        return {f"{types[breeds[row]]}_{serials[row]}": row for row in rows}

    def _observations(self, told: Mapping[str, int], gone: Collection[str] = ()) -> dict[str, Any]:
        """Return each agent's own; zeros for dead ones whose rows others may have taken."""
        now = views.each(self._seen, lambda rows: rows[0].copy())
        lost = gone if self._batch.spec.has_empty_rows else ()
        return {
            agent: views.each(own, np.zeros_like) if agent in lost else own
            for agent, row in told.items()
            for own in [views.each(now, itemgetter(row))]
        }

    def _infos(self, told: Mapping[str, int]) -> dict[str, dict[str, Any]]:
        """To each agent its own row, and what is everyone's."""
        count = self._batch.spec.agents
        own: dict[str, Any] = {}
        shared: dict[str, Any] = {}
        for name, rows in self._told.items():
            row = rows[0].copy()
            (own if row.shape[:1] == (count,) else shared)[name] = row
        return {
            agent: {**shared, **{name: row[index] for name, row in own.items()}}
            for agent, index in told.items()
        }

    def _accept(self, actions: Mapping[str, Any]) -> list[int]:
        limit = self._batch.spec.num_actions
        try:
            chosen = [actions[agent] for agent in self._rows]
        except KeyError as missing:
            raise InputError(f"{missing.args[0]} has no action: give one to every living agent") from None
        for agent, action in zip(self._rows, chosen, strict=True):
            if not isinstance(action, (int, np.integer)) or not 0 <= action < limit:
                raise InputError(f"action {action!r} of {agent} does not fit: expected 0 to {limit - 1}")
        return chosen


def open_named(target: str, given: Mapping[str, Any], render_mode: str | None) -> Batch:
    """A batch of one env, with an end of births where agents come and go without one."""
    batch = views.open_batch(target, dict(given), num_envs=1, render_mode=render_mode)
    if not batch.spec.has_empty_rows or batch.spec.layout.names:
        return batch
    if "max_births" in given:
        raise InputError("PettingZoo wants all names beforehand: give max_births=N, one or more")
    batch.close()
    return open_named(target, {**given, "max_births": MAX_BIRTHS}, render_mode)


def parallel_env(target: str, **given: Any) -> HotloopParallelEnv:
    """A ParallelEnv of a preset: `parallel_env("grid/toy", agents=8, max_steps=500)`."""
    return HotloopParallelEnv(target, **given)


class HotloopAECEnv(views.BatchAdapter, AECEnv[str, Any, Any]):  # type: ignore[misc]
    """One game of a world that declares a contest; the agent that must choose is the one selected."""

    def __init__(self, target: str, **given: Any) -> None:
        super().__init__()
        contest = find(target).world.contest
        if contest is None:
            raise InputError(f"{target} is no game against somebody: use parallel_env for it")
        self._contest = contest
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


def aec_env(target: str, **given: Any) -> HotloopAECEnv:
    """An AECEnv of a preset: `aec_env("cards/mirror", max_decisions=500)`."""
    return HotloopAECEnv(target, **given)
