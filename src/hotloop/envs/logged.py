"""Batches whose runs are written down: the world's own log is told of every step and episode."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.core.exact.random import MASK, mix
from hotloop.core.spans import span
from hotloop.core.world import Run, RunLog
from hotloop.envs.batch import Batch, OrderError
from hotloop.envs.cuda import require_host
from hotloop.envs.engine import Engine
from hotloop.envs.spec import BatchSpec

LOG = "log"
"""The span of what the log takes from whoever steps."""


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
        """What the log has taken from whoever steps, waiting for it included."""

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
