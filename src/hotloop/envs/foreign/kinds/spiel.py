"""Games of OpenSpiel's `rl_environment` as envs of Gymnasium."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from hotloop.envs.foreign.masks import MASK


class SpielEnv(gymnasium.Env[Any, Any]):
    """A game of any number of players, stepped by the actions of those whose turn it is.

    The observation has a row per player, the reward is the first player's. Infos have the rewards of all,
    whose turn it is, and which actions are legal.
    """

    def __init__(self, env: Any) -> None:
        self.env = env
        self.actions, players = int(env.action_spec()["num_actions"]), int(env.num_players)
        self.together = not env.is_turn_based
        """Whether all players act in every step."""
        self.action_space = (
            spaces.MultiDiscrete([self.actions] * players) if self.together else spaces.Discrete(self.actions)
        )
        shape = (players, *env.observation_spec()["info_state"])
        self.observation_space = spaces.Box(-np.inf, np.inf, shape, np.float32)

    @property
    def unwrapped(self) -> Any:
        return self.env

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin a game; the seed decides what chance does in it."""
        if seed is not None:
            self.env.seed(seed)
        now = self.env.reset()
        return self._seen(now), self._info(now)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        now = self.env.step(np.atleast_1d(action).tolist())
        return self._seen(now), now.rewards[0], bool(now.last()), False, self._info(now)

    def _seen(self, now: Any) -> Any:
        return np.array(now.observations["info_state"], np.float32)

    def _info(self, now: Any) -> dict[str, Any]:
        seen: Mapping[str, Any] = now.observations
        player, legal = seen["current_player"], seen["legal_actions"]
        if self.together:
            mask: Any = tuple(map(self._mask, legal))
        else:
            mask = self._mask(legal[player] if player >= 0 else ())  # no player's turn: the game is over
        rewards = now.rewards if now.rewards is not None else [0.0] * len(legal)
        return {MASK: mask, "current_player": player, "rewards": np.array(rewards, np.float64)}

    def _mask(self, legal: Any) -> Any:
        mask = np.zeros(self.actions, np.int8)
        mask[list(legal)] = 1
        return mask

    def close(self) -> None:
        """Nothing: a game holds no window and no process."""
