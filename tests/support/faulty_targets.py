"""Targets, `faulty_targets.py:wrong_byte` and the like: worlds with one fault each, as careless changes make.

Each takes the sizes and the threads that a validation asks for. Steps count from 1, a reset is none.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hotloop
from hotloop.envs.batch import Batch

AT = 5
"""The step at which most faults show."""
LATE = 5_001
ENV, AGENT, TOKEN = 1, 2, 3

Spoil = Callable[["Faulty"], None]


class Faulty(Batch):
    """A batch that is spoiled after every call."""

    def __init__(self, made: Batch, spoil: Spoil) -> None:
        super().__init__(made._engine, made.spec)
        made.close()
        self.spoil = spoil
        self.calls = 0
        self.kept: Any = None

    def step(self, actions: NDArray[np.int32]) -> None:
        super().step(actions)
        self.calls += 1
        self.spoil(self)


def toy(spoil: Spoil, num_envs: int = 4, threads: int = 1, agents: int = 4, seed: int = 42) -> Batch:
    made = hotloop.make(
        "grid/toy", num_envs=num_envs, threads=threads, agents=agents, seed=seed, impl="native"
    )
    return Faulty(made, spoil)


def right(num_envs: int = 4, threads: int = 1, agents: int = 4) -> Batch:
    return toy(lambda batch: None, num_envs, threads, agents)


def wrong_byte(num_envs: int = 4, threads: int = 1, agents: int = 4) -> Batch:
    def spoil(batch: Faulty) -> None:
        if batch.calls == AT and batch.spec.num_envs > ENV:
            batch.observations[ENV, AGENT, TOKEN, 2] ^= 1

    return toy(spoil, num_envs, threads, agents)


def swapped_tokens(num_envs: int = 4, threads: int = 1) -> Batch:
    def spoil(batch: Faulty) -> None:
        if batch.calls == AT and batch.spec.num_envs > ENV:
            row = batch.observations[ENV, AGENT]
            row[[TOKEN, TOKEN + 1]] = row[[TOKEN + 1, TOKEN]]

    return toy(spoil, num_envs, threads)


def dropped_token(num_envs: int = 4, threads: int = 1) -> Batch:
    def spoil(batch: Faulty) -> None:
        if batch.calls == AT and batch.spec.num_envs > ENV:
            row = batch.observations[ENV, AGENT]
            row[TOKEN:-1] = row[TOKEN + 1 :].copy()

    return toy(spoil, num_envs, threads)


def late_reward(num_envs: int = 4, threads: int = 1) -> Batch:
    """Rewards are given a tick later than they are earned."""

    def spoil(batch: Faulty) -> None:
        earned = batch.rewards.copy()
        batch.rewards[:] = 0 if batch.kept is None else batch.kept
        batch.kept = earned

    made = hotloop.make("prospector/short", num_envs=num_envs, threads=threads, impl="native")
    return Faulty(made, spoil)


def one_draw_more(num_envs: int = 4) -> Batch:
    """One env's stream of random numbers is drawn from once too often."""

    def spoil(batch: Faulty) -> None:
        if batch.calls == AT:
            batch._engine.twins[ENV].stream.next()

    return Faulty(hotloop.make("prospector/short", num_envs=num_envs, impl="reference"), spoil)


def late_flag(num_envs: int = 4, threads: int = 1, max_steps: int = 20) -> Batch:
    """An episode's end is announced a step late."""

    def spoil(batch: Faulty) -> None:
        ended = batch.truncations.copy()
        batch.truncations[:] = False if batch.kept is None else batch.kept
        batch.kept = ended

    made = hotloop.make(
        "grid/toy", num_envs=num_envs, threads=threads, agents=4, max_steps=max_steps, impl="native"
    )
    return Faulty(made, spoil)


def order_by_threads(num_envs: int = 4, threads: int = 1) -> Batch:
    """With more than one thread two agents change places."""

    def spoil(batch: Faulty) -> None:
        if batch.calls == AT and batch.spec.threads > 1:
            batch.observations[ENV, [0, 1]] = batch.observations[ENV, [1, 0]]

    return toy(spoil, num_envs, threads)


def dirty_tail(num_envs: int = 4, threads: int = 1) -> Batch:
    """The end of an observation, which no token uses, is not cleared."""

    def spoil(batch: Faulty) -> None:
        if batch.calls == AT and batch.spec.num_envs > ENV:
            batch.observations[ENV, AGENT, -1, 1] = 77

    return toy(spoil, num_envs, threads)


class Forgetful(Faulty):
    """Keeps what an env had done when it is begun anew."""

    def reset_many(
        self,
        indices: Sequence[int] | NDArray[np.int64],
        seeds: Sequence[int] | NDArray[np.uint64] | None = None,
    ) -> None:
        kept = self.infos["success"].copy()
        super().reset_many(indices, seeds)
        self.infos["success"][:] = kept


def kept_across_reset(num_envs: int = 4, threads: int = 1) -> Batch:
    made = hotloop.make("grid/toy", num_envs=num_envs, threads=threads, agents=4, impl="native")
    return Forgetful(made, lambda batch: None)


def late_fault() -> Batch:
    """Right for five thousand steps."""

    def spoil(batch: Faulty) -> None:
        if batch.calls == LATE:
            batch.rewards[0, 1] = 9.0

    return toy(spoil, num_envs=1, agents=2)


class Echo:
    """An env of one number; `wrong_at` spoils one reward, `whim` makes every run another."""

    num_actions = 3

    def __init__(self, wrong_at: int = 0, whim: bool = False, kind: str = "float64") -> None:
        self.wrong_at, self.whim, self.kind = wrong_at, whim, kind
        self.sum = self.steps = 0

    def reset(self, seed: int = 0) -> tuple[Any, dict[str, Any]]:
        self.sum = self.steps = 0
        return np.array([self.sum], self.kind), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.sum += action
        self.steps += 1
        chance = float(np.random.default_rng().random()) if self.whim else 0.0
        reward = action / 10 + (self.steps == self.wrong_at) + chance
        return np.array([self.sum], self.kind), reward, self.steps >= 60, False, {}


def echo(**keys: Any) -> Echo:
    return Echo(**keys)


class Near(Echo):
    """Off by a little more than rounding."""

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        seen, reward, ended, cut, info = super().step(action)
        return seen, reward * (1 + 1e-9), ended, cut, info


def nearly() -> Echo:
    return Near()


class Worded(Echo):
    """Told what to do in words."""

    def __init__(self, wrong_at: int = 0) -> None:
        from gymnasium.spaces import Text

        super().__init__(wrong_at)
        self.action_space = Text(4)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return super().step(len(action))


def worded(wrong_at: int = 0) -> Echo:
    return Worded(wrong_at)


def vector(mode: str) -> Any:
    from gymnasium.envs.classic_control import CartPoleEnv
    from gymnasium.vector import AutoresetMode, SyncVectorEnv

    return SyncVectorEnv([CartPoleEnv, CartPoleEnv], autoreset_mode=AutoresetMode(mode))


def same_step() -> Any:
    return vector("SameStep")


def next_step() -> Any:
    return vector("NextStep")


def wrong_when_old(num_envs: int = 2) -> Batch:
    """Wrong from the thirtieth step of an episode on, whenever it was made."""

    def spoil(batch: Faulty) -> None:
        batch.rewards[batch.infos["episode_length"] >= 30, 1] = 3.0

    return toy(spoil, num_envs)


def wrong_after(num_envs: int = 8, agents: int = 6) -> Batch:
    """Once an agent has done action 3, its env's rewards are wrong until it is begun anew."""

    class Touchy(Faulty):
        def step(self, actions: NDArray[np.int32]) -> None:
            super().step(actions)
            self.kept = np.zeros(num_envs, bool) if self.kept is None else self.kept
            self.kept |= (actions == 3).any(axis=1)
            self.rewards[self.kept, 0] = 1.0

    made = hotloop.make("grid/toy", num_envs=num_envs, agents=agents, impl="native")
    return Touchy(made, lambda batch: None)


def interrupted(num_envs: int = 2) -> Batch:
    """Somebody presses Ctrl-C in the tenth step."""

    def spoil(batch: Faulty) -> None:
        if batch.calls == 10:
            raise KeyboardInterrupt

    return toy(spoil, num_envs)


def odd_turns() -> Any:
    """A game of turns whose fifth is rewarded too well."""
    from pettingzoo.classic import connect_four_v3

    class Odd(connect_four_v3.raw_env):
        turns = 0

        def step(self, action: Any) -> None:
            super().step(action)
            self.turns += 1
            self._cumulative_rewards[self.agent_selection] += self.turns == 5

        def reset(self, seed: int | None = None, options: Any = None) -> None:
            super().reset(seed, options)
            self.turns = 0

    return Odd()


def wrong_when_alone(num_envs: int = 4) -> Batch:
    """Wrong in a batch of one."""

    def spoil(batch: Faulty) -> None:
        if batch.calls == AT and batch.spec.num_envs == 1:
            batch.rewards[0, 3] = 2.0

    return toy(spoil, num_envs)


def only_four() -> Batch:
    """A reference that comes in one size."""
    return toy(lambda batch: None, num_envs=4)
