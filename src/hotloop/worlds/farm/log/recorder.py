"""The log of a run: copies what each step leaves, and hands it to a writer in transactions of whole steps."""

import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from queue import Full, Queue
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.core.errors import HotloopError
from hotloop.core.files import free_path
from hotloop.core.record.metadata import LOG_BYTES, LOG_COUNTERS, LOG_WAITS, LOG_WRITTEN, LOST_STEPS
from hotloop.core.world import Run
from hotloop.worlds.farm import ledger
from hotloop.worlds.farm.ledger import NOT_ITS_TURN, Number
from hotloop.worlds.farm.log.database import Database, Storage, check_place
from hotloop.worlds.farm.log.rows import COUNTS, Snapshot, Stretch, Tabulator

if TYPE_CHECKING:
    from hotloop.worlds.farm import Parameters

T = TypeVar("T")

Trouble = (sqlite3.Error, OSError)  # What a disk or a database may come with


class Direct(Generic[T]):
    """Writes at once, in the thread of whoever steps."""

    waits = wait_ns = 0

    def __init__(self, write: Callable[[T], None]) -> None:
        self._write = write
        self.trouble: Exception | None = None

    def put(self, item: T) -> None:
        if self.trouble is None:
            try:
                self._write(item)
            except Trouble as error:
                self.trouble = error

    def drain(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing waits."""


class Background(Generic[T]):
    """A thread and the queue before it; a full queue makes whoever steps wait, and nothing is dropped.

    After trouble the thread takes what comes and writes none of it, so that nobody waits for ever; a fault is
    trouble, too, and for whoever steps to raise.
    """

    def __init__(self, write: Callable[[T], None], places: int) -> None:
        self._write = write
        self._queue: Queue[T | None] = Queue(places)
        self.trouble: Exception | None = None
        self.waits = self.wait_ns = 0
        self._thread = threading.Thread(target=self._run, name="hotloop-log", daemon=True)
        self._thread.start()

    def put(self, item: T) -> None:
        try:
            self._queue.put_nowait(item)
        except Full:
            begin = now_ns()
            self._queue.put(item)
            self.waits += 1
            self.wait_ns += now_ns() - begin

    def drain(self) -> None:
        self._queue.join()

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            try:
                if self.trouble is None:
                    self._write(item)
            except Exception as error:  # noqa: BLE001 - whoever steps raises it
                self.trouble = error
            finally:
                self._queue.task_done()


# Why a run ended; whose reason is not written was killed.
EXTINCT, PLAYED, CUT_OFF, STOPPED = "nobody is left", "max_steps were played", "cut off", "stopped"

numbered = count(1)


class LogError(HotloopError):
    """The log cannot be written, and the run is not to go on without it."""


def place_of(log: str) -> Path:
    """The database itself; in a folder each run has one of its own."""
    path = Path(log).expanduser()
    return free_path(path / f"run-{os.getpid()}-{next(numbered)}.db") if path.is_dir() else path


class FarmLog:
    """What `RunLog` says; the database is made when the first episode begins."""

    def __init__(self, parameters: "Parameters", run: Run) -> None:
        self._parameters, self._run = parameters, run
        self._storage = Storage(
            path=place_of(parameters.log),
            profile=parameters.log_profile,
            in_memory=parameters.log_storage == "memory",
            most_pages=parameters.log_pages,
            patience_s=parameters.log_patience,
        )
        check_place(self._storage.path, overwrite=parameters.overwrite)
        from hotloop.worlds.farm import TYPES

        self._tabulator = Tabulator(TYPES, parameters.node_cap)
        self._database: Database | None = None
        self._writer: Background[Stretch] | Direct[Stretch] | None = None
        self._runs = Runs(run.num_envs, parameters.agents)
        self._waiting: list[Snapshot] = []
        self._waiting_rows = self._noted = 0
        self._is_off = False

    @property
    def path(self) -> Path:
        return self._storage.path

    def begin(self, envs: Sequence[int], seeds: Sequence[int]) -> None:
        if self._database is None:
            facts = {"target": self._run.target, "impl": self._run.impl, **self._run.settings}
            self._database = Database(self._storage, facts)
            threaded = self._parameters.log_writer == "thread"
            self._writer = (
                Background(self._write, self._parameters.log_queue) if threaded else Direct(self._write)
            )
        self._runs.begin(envs, seeds)

    def note(self) -> None:
        self._noted += self._run.num_envs
        if self._is_off:
            return
        snapshot = self._snapshot()
        self._waiting.append(snapshot)
        numbers = snapshot.numbers
        self._waiting_rows += int(np.count_nonzero(numbers[..., Number.NOW_AGENT] >= 0))
        acted = (numbers[..., Number.TURN_AGENT] >= 0) & (numbers[..., Number.TURN_RESULT] != NOT_ITS_TURN)
        self._waiting_rows += int(np.count_nonzero(acted))
        if self._waiting_rows >= self._parameters.log_buffer:
            self._hand_over()

    def _snapshot(self) -> Snapshot:
        arrays, runs = self._run.arrays, self._runs
        simulation, step, lives = runs.step(arrays)
        return Snapshot(
            simulation=simulation,
            step=step,
            lives=lives,
            numbers=arrays[ledger.NUMBERS].copy(),
            reals=arrays[ledger.REALS].copy(),
            rewards=arrays["rewards"].copy(),
            nodes=arrays[ledger.NODES].copy(),
            counts=np.stack([arrays[name] for name in COUNTS], axis=-1),
            stock=arrays["stock"].copy(),
        )

    def _hand_over(self) -> None:
        """Give what was noted to the writer, and look whether it is well."""
        if self._writer is None or self._is_off:
            return
        begun, ended = self._runs.take()
        if self._waiting or begun or ended:
            self._writer.put(Stretch(steps=tuple(self._waiting), begun=begun, ended=ended))
            self._waiting, self._waiting_rows = [], 0
        self._look()

    def _look(self) -> None:
        trouble = self._writer.trouble if self._writer else None
        if trouble is None or self._is_off:
            return
        self._is_off = True
        if not isinstance(trouble, Trouble):
            raise trouble
        what = f"log={self.path} cannot be written any more: {trouble}"
        if self._parameters.log_trouble == "go_on":
            sys.stderr.write(f"{what}; the run goes on without it\n")
            return
        kept = ", and what was written before is there" if self.path.exists() else ""
        raise LogError(
            f"{what}; the run has stopped{kept}: make room or free the database, or give log_trouble=go_on"
        )

    def _write(self, stretch: Stretch) -> None:
        assert self._database is not None
        written = self._tabulator.tabulate(stretch)
        self._database.write(written, singly=self._parameters.log_buffer == 1)

    def flush(self) -> None:
        if self._writer is not None:
            self._hand_over()
            self._writer.drain()
            self._look()

    def counters(self) -> Mapping[str, int]:
        database, writer = self._database, self._writer
        if database is None or writer is None:
            return {"rows": 0}
        return {
            "rows": database.rows,
            LOST_STEPS: self._noted - database.env_steps if self._is_off else 0,
            LOG_BYTES: database.bytes,
            LOG_WRITTEN: database.pages_written,
            LOG_WAITS: writer.waits,
            f"{LOG_COUNTERS}wait_ns": writer.wait_ns,
            f"{LOG_COUNTERS}flushes": database.flushes,
        }

    def close(self) -> None:
        """Write what is left and leave a whole file; the database is closed whatever happens."""
        if self._writer is None or self._database is None:
            return
        writer, database = self._writer, self._database
        try:
            self._runs.stop()
            self._hand_over()
        finally:
            writer.close()
            self._writer = None
            try:
                database.close()
            except Trouble as error:
                writer.trouble = writer.trouble or error
        if writer.trouble and not self._is_off:
            self._writer = writer
            self._look()


class Runs:
    """Which episode each env is in, and how far."""

    def __init__(self, num_envs: int, settlers: int) -> None:
        self._settlers = settlers
        self._simulation = np.full(num_envs, -1, np.int64)
        self._step = np.zeros(num_envs, np.int64)
        self._lives = np.full(num_envs, settlers, np.int64)
        self._episode = [0] * num_envs
        self._seed = [0] * num_envs
        self._next = 0
        self._begun: list[tuple[int, int, int, str]] = []
        self._ended: list[tuple[int, str, int]] = []

    def begin(self, envs: Sequence[int], seeds: Sequence[int]) -> None:
        for env, seed in zip(envs, seeds, strict=True):
            self._end(env, CUT_OFF)
            self._episode[env] += 1
            self._seed[env] = seed
            self._step[env], self._lives[env] = 0, self._settlers

    def step(self, arrays: Mapping[str, NDArray[np.generic]]) -> tuple[NDArray[np.int64], ...]:
        """Number the step that was made; an episode without one has no number, so that none is empty."""
        for env in np.flatnonzero(self._simulation < 0).tolist():
            self._simulation[env] = self._next
            self._begun.append((self._next, env, self._episode[env] - 1, str(self._seed[env])))
            self._next += 1
        self._step += 1
        seen = (self._simulation.copy(), self._step.copy(), self._lives)
        self._lives = arrays["lives"].astype(np.int64)
        for name, reason in (("terminals", EXTINCT), ("truncations", PLAYED)):
            for env in np.flatnonzero(arrays[name]).tolist():
                self._end(env, reason)
        return seen

    def _end(self, env: int, reason: str) -> None:
        if self._simulation[env] >= 0:
            self._ended.append((int(self._step[env]), reason, int(self._simulation[env])))
            self._simulation[env] = -1

    def stop(self) -> None:
        for env in range(len(self._episode)):
            self._end(env, STOPPED)

    def take(self) -> tuple[tuple[tuple[int, int, int, str], ...], tuple[tuple[int, str, int], ...]]:
        """The runs that began and ended since the last time."""
        begun, ended = tuple(self._begun), tuple(self._ended)
        self._begun, self._ended = [], []
        return begun, ended
