"""DeepMind's envs as envs of Gymnasium: `dm_env` (dm_control, Jumanji, bsuite, ...), and OpenSpiel's games.

Only a target that needs one imports this, since it needs Gymnasium.
"""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from hotloop.envs.foreign.inside import MASK, attribute


class DmEnv(gymnasium.Env[Any, Any]):
    """Such an env: steps of time become five values, specs become spaces."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.action_space, self.observation_space = (
            space_of(each) for each in (env.action_spec(), env.observation_spec())
        )

    @property
    def unwrapped(self) -> Any:
        return self.env

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; where it keeps a generator as dm_control does, that is seeded."""
        if seed is not None:
            for held in (attribute(self.env, "task"), self.env):
                for name in ("random", "random_state"):
                    generator = attribute(held, name)
                    if isinstance(generator, np.random.RandomState):
                        generator.seed(seed % 2**32)
        return parts(self.env.reset().observation), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        now = self.env.step(action)
        last = bool(now.last())
        ended = last and not now.discount
        return (
            parts(now.observation),
            0.0 if now.reward is None else now.reward,
            ended,
            last and not ended,
            {},
        )

    def close(self) -> None:
        if callable(attribute(self.env, "close")):
            self.env.close()


def parts(seen: Any) -> Any:
    """What is seen, by name where it is a tuple with names."""
    return {name: parts(each) for name, each in seen._asdict().items()} if hasattr(seen, "_asdict") else seen


def space_of(spec: Any) -> spaces.Space[Any]:
    """The space of what a spec allows."""
    if isinstance(spec, Mapping):
        return spaces.Dict({name: space_of(each) for name, each in spec.items()})
    if isinstance(spec, (tuple, list)):
        return spaces.Tuple([space_of(each) for each in spec])
    if hasattr(spec, "num_values"):
        return spaces.Discrete(int(spec.num_values))
    dtype = np.dtype(spec.dtype)
    ends: tuple[Any, Any] = (False, True) if dtype.kind == "b" else (-np.inf, np.inf)
    if hasattr(spec, "minimum"):
        ends = spec.minimum, spec.maximum
    elif dtype.kind in "iu":
        ends = np.iinfo(dtype).min, np.iinfo(dtype).max
    low, high = (np.broadcast_to(each, spec.shape).astype(spec.dtype) for each in ends)
    return spaces.Box(low, high, spec.shape, spec.dtype)


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
        return self._observe(now), self._info(now)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        now = self.env.step(np.atleast_1d(action).tolist())
        return self._observe(now), now.rewards[0], bool(now.last()), False, self._info(now)

    def _observe(self, now: Any) -> Any:
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
