"""Pairs of episodes: one policy on both sides, from the same seeds, with the same chances; kept as rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hotloop.core.machine import need
from hotloop.core.progress import Progress
from hotloop.core.target import Target
from hotloop.envs.batch import Batch
from hotloop.envs.foreign.training import open_trainable, random_actions
from hotloop.envs.open import make

ENVS = 32  # Episodes that are played side by side
LIMIT = 500  # Steps after which an episode is cut off
AGENTS = 4  # Of an env whose rows are kept

# Of an observation that are looked at: its own, or as many random sums of them where it has more
COMPONENTS = 32

Moved = Callable[[int], None]  # Told after every step how many episodes have ended in it


class Chooser(Protocol):
    """Plays one wave of episodes."""

    def choose(self) -> NDArray[Any]: ...

    def note(self, ended: list[int]) -> None: ...


Seat = Callable[[Batch, int], Chooser]  # Puts a policy at a batch, with chances of their own for a seed


class RandomSeat:
    """Random play; both sides draw the same chances, whatever is legal for each."""

    def __init__(self, batch: Batch, seed: int) -> None:
        self._batch, self._random = batch, np.random.default_rng(seed)

    def choose(self) -> NDArray[Any]:
        batch, layout = self._batch, self._batch.spec.layout
        like = batch.new_actions()
        rows = (batch.spec.num_envs, batch.spec.agents)
        drawn = random_actions(layout, self._random, rows, batch.masks)
        return np.ascontiguousarray(drawn.reshape(like.shape).astype(like.dtype))

    def note(self, ended: list[int]) -> None:
        """What was is of no interest to it."""


class PlayerSeat:
    """One of a world's own players."""

    def __init__(self, batch: Batch, player: str) -> None:
        self._batch, self._player = batch, player

    def choose(self) -> NDArray[Any]:
        return self._batch.choose(self._player)

    def note(self, ended: list[int]) -> None:
        """It sees that by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What one side did: a row a step and agent, all episodes one after another."""

    episodes: int
    episode: NDArray[np.int64]  # Of each row
    seen: NDArray[np.float64]  # [rows, components], before the step
    after: NDArray[np.float64]
    actions: NDArray[np.float64]  # [rows, numbers of an action]
    rewards: NDArray[np.float64]
    ended: NDArray[np.bool_]  # Whether the rules ended the episode with this step
    returns: NDArray[np.float64]  # [episodes], means over agents
    lengths: NDArray[np.int64]


def open_side(target: Target) -> Batch:
    """One side, as many envs as are played at a time."""
    keyed = target.with_keys({"num_envs": ENVS})
    return open_trainable(keyed) if keyed.is_foreign else make(keyed.name, **keyed.keys)


def play(batch: Batch, seat: Seat, seeds: NDArray[np.int64], moved: Moved) -> Rows:
    """An episode from each seed, in waves; a multiple of ENVS."""
    waves = [wave(batch, seat, part, moved) for part in seeds.reshape(-1, ENVS)]
    joined = {
        name: np.concatenate([getattr(each, name) for each in waves])
        for name in ("seen", "after", "actions", "rewards", "ended", "returns", "lengths")
    }
    episode = np.concatenate([each.episode + number * ENVS for number, each in enumerate(waves)])
    return Rows(episodes=len(seeds), episode=episode, **joined)


def wave(batch: Batch, seat: Seat, seeds: NDArray[np.int64], moved: Moved) -> Rows:
    """One episode of each env, to its end or to the limit."""
    batch.reset(seeds.tolist())
    chooser, keep = seat(batch, int(seeds[0])), Keeper(batch)
    for _ in range(LIMIT):
        before = keep.look(batch.observations)
        actions = np.array(chooser.choose())
        batch.step(actions)
        over = batch.terminals | batch.truncations
        keep.take(before, actions, over)
        chooser.note(np.flatnonzero(over).tolist())
        moved(int(np.count_nonzero(over & keep.live)))
        keep.live &= ~over
        if not keep.live.any():
            break
    moved(int(np.count_nonzero(keep.live)))
    return keep.rows()


class Keeper:
    """Takes down the rows of a wave."""

    def __init__(self, batch: Batch) -> None:
        self._batch, self._agents = batch, min(batch.spec.agents, AGENTS)
        self.live = np.ones(batch.spec.num_envs, bool)
        self._returns = np.zeros(batch.spec.num_envs)
        self._lengths = np.zeros(batch.spec.num_envs, np.int64)
        self._kept: list[tuple[NDArray[Any], ...]] = []
        size = int(np.prod(batch.observations.shape[1:])) // batch.spec.agents
        self._sums = None if size <= COMPONENTS else sums_of(size)
        first = batch.observations.reshape(-1, size)
        self._one_hot = size > 2 and bool(
            ((first == 0).sum(axis=1) == size - 1).all() and (first.max(axis=1) == 1).all()
        )

    def look(self, observations: NDArray[Any]) -> NDArray[np.float64]:
        """[envs, agents, components], a copy."""
        rows = observations.reshape(self._batch.spec.num_envs, self._batch.spec.agents, -1)
        told = rows[:, : self._agents].astype(np.float64)
        some = told if self._sums is None else told @ self._sums
        return np.concatenate([told.argmax(axis=-1)[..., None], some], axis=-1) if self._one_hot else some

    def take(self, before: NDArray[np.float64], actions: NDArray[Any], over: NDArray[np.bool_]) -> None:
        batch, live = self._batch, self.live
        envs = batch.spec.num_envs
        after = self.look(batch.observations)
        if over.any():
            after[over] = self.look(batch.final_observations)[over]
        rewards = batch.rewards.reshape(envs, -1)
        self._returns[live] += rewards[live].mean(axis=1)
        self._lengths[live] += 1
        acted = actions.reshape(envs, batch.spec.agents, -1)[:, : self._agents]
        ended = np.repeat(batch.terminals[:, None], self._agents, axis=1)
        kept = (before, after, acted, rewards[:, : self._agents], ended)
        self._kept.append((np.flatnonzero(live), *(np.array(each[live]) for each in kept)))

    def rows(self) -> Rows:
        """All rows, an episode's in the order of its steps for each agent."""
        envs = np.concatenate([np.repeat(each[0], self._agents) for each in self._kept])
        agents = np.concatenate([np.tile(np.arange(self._agents), len(each[0])) for each in self._kept])
        order = np.lexsort((agents, envs))  # stable, so steps stay in order
        flat = [
            np.concatenate([each[part].reshape(len(each[0]) * self._agents, -1) for each in self._kept])[
                order
            ]
            for part in range(1, 6)
        ]
        seen, after, actions, rewards, ended = flat
        return Rows(
            episodes=self._batch.spec.num_envs,
            episode=envs[order],
            seen=seen,
            after=after,
            actions=actions.astype(np.float64),
            rewards=rewards[:, 0].astype(np.float64),
            ended=ended[:, 0].astype(bool),
            returns=self._returns,
            lengths=self._lengths,
        )


def sums_of(size: int) -> NDArray[np.float64]:
    """Random sums of an observation's components, always the same."""
    signs = np.random.default_rng(size).choice([-1.0, 1.0], (size, COMPONENTS))
    told: NDArray[np.float64] = signs / np.sqrt(size)
    return told


STEPS = 64  # Of every env in a rollout

MINIBATCHES = 4


class TrainedSeat:
    """What was learnt, drawing by what it says, with chances that both sides share."""

    def __init__(self, trainer: Any, batch: Batch, seed: int) -> None:
        from hotloop.train.evaluation import PolicyRunner

        self._actor = PolicyRunner(trainer, batch, seed=seed)

    def choose(self) -> NDArray[Any]:
        return self._actor.choose()

    def note(self, ended: list[int]) -> None:
        self._actor.note(ended)


def trained(target: Target, steps: int, progress: Progress) -> Seat:
    """Train on one side, with the usual settings of PPO."""
    need("torch")
    from hotloop.train.settings import TrainSettings
    from hotloop.train.trainer import Trainer

    batch = open_side(target)
    samples = ENVS * batch.spec.agents * STEPS
    total = -(-steps // (ENVS * STEPS)) * ENVS * STEPS
    settings = TrainSettings(total_timesteps=total, num_steps=STEPS, minibatch_size=samples // MINIBATCHES)
    trainer = Trainer(batch, settings)
    while not trainer.finished:
        trainer.update()
        progress(trainer.steps, total)
    batch.close()
    return lambda played, seed: TrainedSeat(trainer, played, seed)
