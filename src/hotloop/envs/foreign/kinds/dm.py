"""Envs with DeepMind's interface (`dm_env`: dm_control, Jumanji, bsuite, ...) as envs of Gymnasium."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from hotloop.envs.foreign.spec import attribute


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
    bounded = hasattr(spec, "minimum")
    ends = (spec.minimum, spec.maximum) if bounded else ends_of(np.dtype(spec.dtype))
    low, high = (np.broadcast_to(each, spec.shape).astype(spec.dtype) for each in ends)
    return spaces.Box(low, high, spec.shape, spec.dtype)


def ends_of(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """What an array of such numbers can hold."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min, np.iinfo(dtype).max
    return (False, True) if dtype.kind == "b" else (-np.inf, np.inf)
