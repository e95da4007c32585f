"""Batches, teams and models as strangers write them: no library, or somebody else's."""

import random
from types import SimpleNamespace
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete, Tuple


class Batched:
    """Six envs behind one call, of ten steps an episode, that begin anew by themselves."""

    num_envs, num_actions = 6, 3

    def __init__(self) -> None:
        self.age = np.arange(6.0)

    def reset(self) -> Any:
        self.age = np.arange(6.0)
        return self.age.copy()

    def step(self, actions: Any) -> Any:
        assert actions.shape == (6,)
        self.age += 1
        over = self.age >= 10
        self.age[over] = 0
        return self.age.copy(), actions * 1.0, over, {}


class Pool:
    """A pool of envs that cannot be iterated, as Tianshou's."""

    def __len__(self) -> int:
        return 2


class PooledVector(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """A vector env whose attribute `envs` is a pool."""

    num_envs = 2
    single_action_space, single_observation_space = Discrete(3), Box(-1, 1, (1,))
    action_space = gymnasium.vector.utils.batch_space(single_action_space, 2)
    observation_space = gymnasium.vector.utils.batch_space(single_observation_space, 2)

    def __init__(self) -> None:
        self.envs = Pool()

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return np.zeros((2, 1), np.float32), {}

    def step(self, actions: Any) -> Any:
        return np.zeros((2, 1), np.float32), np.zeros(2), np.zeros(2, bool), np.zeros(2, bool), {}


class Team:
    """Twenty agents in one env; one that says so."""

    num_agents, num_actions = 20, 4

    def __init__(self) -> None:
        self.age = 0

    def reset(self, seed: int | None = None) -> Any:
        self.age = 0
        return np.zeros((20, 3))

    def step(self, action: Any) -> Any:
        self.age += 1
        over = np.full(20, self.age == 5)
        return np.full((20, 3), self.age), np.ones(20), over, np.zeros(20, bool), {}


class Foragers(gymnasium.Env[Any, Any]):
    """Two agents in one env of Gymnasium's, whose rewards are a list and whose end is one."""

    n_agents = 2
    action_space, observation_space = Tuple([Discrete(3)] * 2), Tuple([Box(0.0, 9.0, (1,))] * 2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.age = 0
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        assert len(action) == 2
        self.age += 1
        return self._seen(), [1.0, 2.0], self.age == 5, False, {}

    def _seen(self) -> Any:
        return tuple(np.full(1, self.age, np.float32) for _ in range(2))


class Seen(NamedTuple):
    angles: Any
    goal: Any


class Pendulums:
    """An env with DeepMind's interface, kept to by hand; every other episode is cut off."""

    def __init__(self) -> None:
        self.random_state, self.age, self.episodes = np.random.RandomState(0), 0, 0

    def action_spec(self) -> Any:
        return SimpleNamespace(shape=(2,), dtype=np.float32, minimum=-1.0, maximum=np.ones(2))

    def observation_spec(self) -> Any:
        angles = SimpleNamespace(shape=(3,), dtype=np.float64)
        return {"angles": angles, "goal": SimpleNamespace(shape=(), dtype=np.int32, num_values=4)}

    def reset(self) -> Any:
        self.age, self.episodes = 0, self.episodes + 1
        return self._now(None)

    def step(self, action: Any) -> Any:
        assert action.shape == (2,)
        assert np.abs(action).max() <= 1
        self.age += 1
        return self._now(float(action[0]))

    def _now(self, reward: float | None) -> Any:
        last = self.age == 6
        return SimpleNamespace(
            observation=Seen(self.random_state.random_sample(3), np.int64(self.age % 4)),
            reward=reward,
            discount=float(not last or self.episodes % 2),
            last=lambda: last,
        )


class Model:
    """It steps, and that is all."""

    made = 0

    def __init__(self) -> None:
        Model.made += 1
        self.random, self.wealth, self.running = random.Random(3), 0.0, True
        self.steps = 0

    def step(self) -> None:
        self.steps += 1
        self.wealth += self.random.random()
        self.running = self.steps < 8


class Ecology:
    """It begins anew by itself and plays itself; who wants to may push it."""

    def reset(self, seed: int = 0) -> tuple[list[int], dict[str, int]]:
        self.random, self.age, self.pushed = random.Random(seed), 0, 0
        return [0, 0], {}

    def step(self, push: int | None = None) -> tuple[list[int], float, bool, bool, dict[str, int]]:
        self.age, self.pushed = self.age + 1, self.pushed + (push or 0)
        return [self.random.randrange(9), self.age], 1.0, False, self.age == 8, {}


class Forgetful(gymnasium.Env[Any, Any]):
    """It draws a seed wherever it is given none, at every reset."""

    observation_space, action_space = Box(0.0, 1.0, (1,)), Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.random, self.age = np.random.default_rng(seed), 0
        return self.random.random(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.age += 1
        return self.random.random(1, np.float32), 1.0, self.age == 8, False, {}


class Clockwork:
    """It begins anew by itself, and its step takes and returns nothing."""

    def reset(self) -> None:
        self.age = 0

    def step(self) -> None:
        self.age += 1


class Other(Model):
    """The same, but for its wealth after five steps."""

    def step(self) -> None:
        super().step()
        self.wealth += self.steps == 5


def sb3(processes: bool = False, num: int = 2) -> Any:
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv
    from support.masked import Strict

    makers = [lambda: Strict("method")] * num
    return SubprocVecEnv(makers, start_method="fork") if processes else DummyVecEnv(makers)


def bad_reward(what: str) -> Any:
    from support.theirs import Env

    class Bad(Env):
        def step(self, action: Any) -> Any:
            seen, _, ended, cut, info = super().step(action)
            reward: Any = {"array": np.ones(3), "nothing": None}.get(what, 1.0)
            if what == "leaves":
                raise SystemExit(3)
            return seen, reward, np.zeros(3, bool) if what == "flags" else ended, cut, info

    return Bad()
