"""Watching a batch: arrays once a step of all envs, and what they came to over a window of steps.

A watcher sees the batch's own arrays after every step and runs no Python for each env. Whoever wants one env
at a time asks through `PerEnv`, and pays for it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.envs.batch import Batch
from hotloop.envs.cuda import DeviceBatch
from hotloop.train.sums import sums_of

if TYPE_CHECKING:
    from hotloop.train.device.windows import DeviceWindows

# Envs whose infos are looked at when a window ends, whether or not an episode of theirs did.
MOST_SAMPLED = 16

RETURNS, LENGTHS = "/returns", "/lengths"  # Columns beside the infos, by names that no info has


class Watcher(Protocol):
    """Who is told of every step of a batch while a policy plays."""

    def step(self, batch: Batch) -> None:
        """Look at the batch after a step; its arrays are views, rewritten by the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowEpisodes:
    """What a stretch of steps came to."""

    env_steps: int
    episodes: int  # That ended in the window, each counted where its last step is
    # Of their returns, each the mean over its agents: where they come and go, over all there ever were.
    return_sum: float
    return_min: float | None
    return_max: float | None
    length_sum: int
    # The world's infos in the last step of these episodes: means over them.
    infos: Mapping[str, float] = field(default_factory=dict)
    # The world's infos in the window's last step: means over a few envs, for worlds that seldom end.
    sampled: Mapping[str, float] = field(default_factory=dict)

    @property
    def mean_return(self) -> float | None:
        """None where no episode ended."""
        return self.return_sum / self.episodes if self.episodes else None

    @property
    def mean_length(self) -> float | None:
        return self.length_sum / self.episodes if self.episodes else None


class Windows:
    """Adds up returns, lengths and infos; `close` ends a window and begins the next.

    Sums are exact, so that they do not depend on the order in which envs are looked at.
    """

    def __init__(self, batch: Batch) -> None:
        envs, agents = batch.spec.num_envs, batch.spec.agents
        self._returns = np.zeros((envs, agents))
        self._lengths = np.zeros(envs, np.int64)
        self._whole = np.ones(envs, np.bool_)
        """Whether the episode that each env is in was seen from its beginning."""
        self._lives = batch.infos["lives"] if batch.spec.has_empty_rows else None
        """Of each env all agents there ever were, where they come and go."""
        self._infos = {name: info for name, info in batch.infos.items() if self._is_told(info)}
        self._means = {name: np.zeros(envs) for name, info in self._infos.items() if info.ndim > 1}
        """Of infos that are several numbers, each env's mean in its last step."""
        self._mean_returns = np.zeros(envs)
        self._low, self._high = math.inf, -math.inf
        self._sums = sums_of(
            {RETURNS: self._mean_returns, LENGTHS: self._lengths, **self._infos, **self._means},
            threads=batch.spec.threads,
        )
        self._calls = self._episodes = 0
        self._sampled = np.unique(np.linspace(0, envs - 1, min(envs, MOST_SAMPLED)).astype(np.int64))

    def _is_told(self, info: NDArray[Any]) -> bool:
        """Not where some of its rows are nobody's: a mean over them says nothing."""
        return info.size > 0 and (info.ndim == 1 or self._lives is None)

    def step(self, batch: Batch) -> None:
        self._calls += 1
        self._lengths += 1
        self._returns += batch.rewards.reshape(self._returns.shape)
        over = np.flatnonzero(batch.terminals | batch.truncations)
        if over.size:
            counted = over[self._whole[over]]
            if counted.size:
                self._add(counted)
            self._returns[over] = 0
            self._lengths[over] = 0
            self._whole[over] = True

    def _add(self, envs: NDArray[np.int64]) -> None:
        """Add the episodes that ended in some envs."""
        returns = self._returns_of(envs)
        self._mean_returns[envs] = returns
        self._low, self._high = min(self._low, float(returns.min())), max(self._high, float(returns.max()))
        for name, means in self._means.items():
            means[envs] = row_means(self._infos[name][envs])
        self._sums.add(envs)
        self._episodes += len(envs)

    def _returns_of(self, envs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Of some episodes, over their agents."""
        returns = self._returns[envs]
        if self._lives is not None:
            shared: NDArray[np.float64] = returns.sum(axis=1) / self._lives[envs]
            return shared
        means: NDArray[np.float64] = returns[:, 0] if returns.shape[1] == 1 else returns.mean(axis=1)
        return means

    def close(self) -> WindowEpisodes:
        """What happened since the window before."""
        sums, count = self._sums.take(), self._episodes
        window = WindowEpisodes(
            env_steps=self._calls * len(self._lengths),
            episodes=count,
            return_sum=sums[RETURNS],
            return_min=self._low if count else None,
            return_max=self._high if count else None,
            length_sum=int(sums[LENGTHS]),
            infos={name: sums[name] / count for name in self._infos if count},
            sampled={name: mean(live[self._sampled]) for name, live in self._infos.items() if self._calls},
        )
        self._calls = self._episodes = 0
        self._low, self._high = math.inf, -math.inf
        return window

    def state(self) -> dict[str, NDArray[Any]]:
        """The episodes that are under way, for a run that is to go on later."""
        return {"returns": self._returns.copy(), "lengths": self._lengths.copy(), "whole": self._whole.copy()}

    def restore(self, state: Mapping[str, NDArray[Any]] | None) -> None:
        """Go on with episodes under way; where they, or a part of them, are not known, they do not count."""
        if state is None or not self.state().keys() <= state.keys():
            self._whole[:] = False
            return
        for name, mine in (("returns", self._returns), ("lengths", self._lengths), ("whole", self._whole)):
            if state[name].shape != mine.shape:
                raise InputError(
                    f"the saved {name} have the shape {state[name].shape}, expected {mine.shape}: "
                    "resume with the same num_envs and agents"
                )
            mine[:] = state[name]


def windows_of(batch: Batch, *, compiled: bool = False) -> "Windows | DeviceWindows":
    """Who adds up the episodes of a batch: on the host, or where its arrays are, compiled if wanted."""
    if not isinstance(batch, DeviceBatch):
        return Windows(batch)
    from hotloop.train.device.windows import DeviceWindows

    return DeviceWindows(batch, compiled=compiled)


def mean(rows: NDArray[Any]) -> float:
    """Over rows, each one number or the mean of those it has, as of agents."""
    return fsum(row_means(rows) if rows.ndim > 1 else rows.astype(float)) / len(rows)


def row_means(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Of each row that is several numbers, their mean."""
    means: NDArray[np.float64] = rows.reshape(len(rows), -1).mean(axis=1, dtype=np.float64)
    return means


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvStep:
    """One step of one env, as copies that stay."""

    env: int
    rewards: NDArray[np.float32]  # One an agent
    terminal: bool
    truncated: bool
    info: Mapping[str, Any]  # Of an env that has just finished, or is sampled; else empty


class PerEnv:
    """Serves a callback that wants one env at a time, for those envs that it names."""

    def __init__(
        self, callback: Callable[[EnvStep], None], *, envs: Sequence[int] | None = None, sampled: int = 0
    ) -> None:
        """`envs` are all where nobody names them; the first `sampled` of them have infos in every step."""
        self._callback = callback
        self._envs = envs
        self._sampled = sampled

    def step(self, batch: Batch) -> None:
        envs = range(batch.spec.num_envs) if self._envs is None else self._envs
        over = batch.terminals | batch.truncations
        for place, env in enumerate(envs):
            has_info = place < self._sampled or over[env]
            info = {name: np.copy(rows[env]) for name, rows in batch.infos.items()} if has_info else {}
            self._callback(
                EnvStep(
                    env=env,
                    rewards=batch.rewards[env].copy(),
                    terminal=bool(batch.terminals[env]),
                    truncated=bool(batch.truncations[env]),
                    info=info,
                )
            )
