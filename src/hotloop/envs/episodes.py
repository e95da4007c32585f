"""Episodes of a batch: how long each lasted, what it earned, and the world's own log."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.core.exact_math import MASK, mix
from hotloop.core.spans import span
from hotloop.core.world import Run, RunLog
from hotloop.envs.batch import Batch, OrderError
from hotloop.envs.cuda import require_host
from hotloop.envs.native import Engine
from hotloop.envs.spec import BatchSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One episode that is over."""

    env: int
    length: int  # In steps
    # Sum of rewards, as the mean over its agents: where they come and go, over all there ever were.
    return_per_agent: float
    cut: bool  # Whether it was cut off before its end
    terminal: bool = False  # Whether the world's rules ended it
    outcomes: Mapping[str, float] = field(default_factory=dict)  # What it came to by the world's own measures


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


LOG = "log"  # The span of the time that the log takes from a step


def logged(batch: Batch) -> Batch:
    """The batch, or where its parameters ask for a log one that keeps it."""
    spec = batch.spec
    if spec.world.log is None:
        return batch
    arrays = {"rewards": batch.rewards, "terminals": batch.terminals, "truncations": batch.truncations}
    run = Run(
        target=spec.target,
        impl=spec.impl,
        num_envs=spec.num_envs,
        settings=spec.described.params | spec.described.variant,
        arrays=arrays | batch.infos,
    )
    log = spec.world.log(spec.parameters, run)
    if log is None:
        return batch
    require_host(batch, "a log")
    return LoggedBatch(batch.engine, spec, log)


class LoggedBatch(Batch):
    """A batch that tells a log what happened; the log is whole when the batch is closed."""

    def __init__(self, engine: Engine, spec: BatchSpec, log: RunLog) -> None:
        super().__init__(engine, spec)
        self._log = log
        self._seeds_of = LoggedSeeds(spec)
        self._end = finalize(self, log.close)
        self.log_ns = 0
        """Time that the log has taken from steps, waiting for it included."""

    def reset(self, seeds: Sequence[int] | NDArray[np.uint64] | None = None) -> None:
        super().reset(seeds)
        self._begin(range(self.spec.num_envs), seeds)

    def reset_many(
        self,
        indices: Sequence[int] | NDArray[np.int64],
        seeds: Sequence[int] | NDArray[np.uint64] | None = None,
    ) -> None:
        super().reset_many(indices, seeds)
        self._begin([int(env) for env in indices], seeds)

    def step(self, actions: NDArray[np.int32]) -> None:
        super().step(actions)
        with self._noted():
            self._log.note()
            if self.spec.settings.autoreset:
                ended = np.flatnonzero(self.terminals | self.truncations)
                if ended.size:
                    self._begin(ended.tolist(), None)

    def wait(self) -> None:
        """Return when the log has every row of the steps so far."""
        with self._noted():
            self._log.flush()

    @contextmanager
    def _noted(self) -> Iterator[None]:
        begin = now_ns()
        with span(LOG):
            yield
        self.log_ns += now_ns() - begin

    @property
    def counters(self) -> dict[str, int]:
        return {**super().counters, **self._log.counters()}

    def load(self, env: int, saved: bytes) -> None:
        raise unfit("load")

    def fork(self, env: int, into: int) -> None:
        raise unfit("fork")

    def close(self) -> None:
        super().close()
        self._end()

    def _begin(self, envs: Sequence[int], seeds: Sequence[int] | NDArray[np.uint64] | None) -> None:
        chosen = [self._seeds_of.next(env) for env in envs] if seeds is None else [int(s) for s in seeds]
        for env, seed in zip(envs, chosen, strict=True):
            self._seeds_of.last[env] = seed
        self._log.begin(envs, chosen)


def beside(batch: Batch) -> dict[str, int]:
    """Nanoseconds of what a step does beside its engine, by name, since the batch was made."""
    return {LOG: batch.log_ns} if isinstance(batch, LoggedBatch) else {}


def unfit(call: str) -> OrderError:
    return OrderError(f"{call}: a batch that writes a log plays every episode from its beginning")


class LoggedSeeds:
    """The seeds that an engine takes for the next episodes of its envs."""

    def __init__(self, spec: BatchSpec) -> None:
        self._settings = spec.settings
        self._episodes = [0] * spec.num_envs
        self.last: list[int | None] = [None] * spec.num_envs

    def next(self, env: int) -> int:
        last = self.last[env]
        if self._settings.seed_step and last is not None:
            return (last + self._settings.seed_step) & MASK
        self._episodes[env] += 1
        return mix(self._settings.seed, env, self._episodes[env] - 1)
