"""Episodes played on a batch: how long each lasted, what it earned, and an end for the endless."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hotloop.envs.batch import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One episode that is over."""

    env: int
    length: int
    """In steps."""
    return_per_agent: float
    """Sum of rewards, as the mean over its agents: where they come and go, over all there ever were."""
    cut: bool
    """Whether it was cut off before its end."""
    terminal: bool = False
    """Whether the world's rules ended it."""
    outcomes: Mapping[str, float] = field(default_factory=dict)
    """What it came to by the world's own measures."""


class Episodes:
    """Steps a batch that resets itself, and keeps the account of its episodes."""

    def __init__(self, batch: Batch, limit: int = 0, watched: Iterable[str] = ()) -> None:
        self._batch = batch
        self._limit = limit
        self.told = {info: np.zeros_like(batch.infos[info]) for info in watched}
        """Watched infos as the last step left them; in the batch, an episode that was cut off is gone."""
        self.ages = np.zeros(batch.spec.num_envs, np.int64)
        """Steps of the episode each env is in."""
        self.returns = np.zeros((batch.spec.num_envs, batch.spec.agents))
        """Rewards of the episode each env is in, by agent."""

    def step(self, actions: NDArray[np.int32]) -> list[Episode]:
        """Step every env; returns the episodes that ended, or were cut off after `limit` steps."""
        batch = self._batch
        batch.step(actions)
        self.ages += 1
        for info, told in self.told.items():
            np.copyto(told, batch.infos[info])
        self.returns += batch.rewards.reshape(self.returns.shape)
        ended = batch.terminals | batch.truncations
        cut = ~ended & (self.ages >= self._limit) if self._limit else np.zeros_like(ended)
        over = np.flatnonzero(ended | cut)
        if not over.size:
            return []
        episodes = [self._episode(env, cut=bool(cut[env])) for env in over.tolist()]
        self.ages[over] = 0
        self.returns[over] = 0
        if cut.any():
            batch.reset_many(np.flatnonzero(cut))
        return episodes

    def _agents(self, env: int) -> int:
        spec, infos = self._batch.spec, self._batch.infos
        return int(infos["lives"][env]) or spec.agents if spec.has_empty_rows else spec.agents

    def _episode(self, env: int, *, cut: bool) -> Episode:
        infos, outcomes = self._batch.infos, self._batch.spec.world.outcomes
        return Episode(
            env=env,
            length=int(self.ages[env]),
            return_per_agent=float(self.returns[env].sum()) / self._agents(env),
            cut=cut,
            terminal=bool(self._batch.terminals[env]) and not cut,
            outcomes={name: float(infos[each.info][env]) for name, each in outcomes.items()},
        )
