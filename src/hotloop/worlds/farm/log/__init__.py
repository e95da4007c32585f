"""The farm's log: everything of a run in a SQLite database.

`FarmLog` copies what each step leaves and hands it, as stretches of whole steps, to a writer: a thread or the
caller. `rows` makes rows of a stretch, and `Database` writes them in one transaction.
"""

import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import Full, Queue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.core.errors import HotloopError, InputError
from hotloop.core.files import free_path
from hotloop.core.record.metadata import LOG_BYTES, LOG_COUNTERS, LOG_WAITS, LOG_WRITTEN, LOST_STEPS
from hotloop.core.world import LoggedRun
from hotloop.worlds.farm import TYPES, Parameters, ledger
from hotloop.worlds.farm.ledger import NOT_ITS_TURN, Number
from hotloop.worlds.farm.log.rows import (
    AGENTS,
    COUNTS,
    SIMULATIONS,
    Columns,
    LoggedRows,
    LogTable,
    Snapshot,
    Stretch,
    Tabulator,
    create,
    version_of,
)

# Rows of one statement. Each statement hands Python's lock over and back, so the stepping thread gets it.
AT_ONCE = (250, 25, 1)

PAGE_BYTES = 4096

DEATH = f"UPDATE {AGENTS.name} SET died = ?, cause = ? WHERE simulation = ? AND agent = ?"
END = f"UPDATE {SIMULATIONS.name} SET steps = ?, reason = ? WHERE simulation = ?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How SQLite weighs speed, safety and memory; the journal is a WAL in all of them."""

    # FULL waits for the disk at every transaction, NORMAL at every checkpoint, OFF never: what a killed
    # process has committed is there with each, what a machine without power has with FULL alone.
    synchronous: str
    cache_kib: int
    checkpoint_pages: int  # Pages of the WAL that are moved into the database at once
    temporary: str  # Where SQLite keeps what it needs for a while


PROFILES = {
    "balanced": Profile(synchronous="NORMAL", cache_kib=16_384, checkpoint_pages=4_000, temporary="MEMORY"),
    "performance": Profile(synchronous="OFF", cache_kib=65_536, checkpoint_pages=16_000, temporary="MEMORY"),
    "safety": Profile(synchronous="FULL", cache_kib=16_384, checkpoint_pages=1_000, temporary="FILE"),
    "memory": Profile(synchronous="NORMAL", cache_kib=512, checkpoint_pages=250, temporary="FILE"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Where a database is, and how it is kept."""

    path: Path
    profile: str = "balanced"
    in_memory: bool = False  # Whether it is copied to its path only when it is closed
    most_pages: int = 0  # 0 is without a limit
    patience_s: float = 5.0  # How long to wait for another process's lock


def check_place(path: Path, *, overwrite: bool) -> None:
    """Refuse, before anything is run, a place where no log can be."""
    if not path.parent.is_dir():
        raise InputError(f"log={path}: there is no folder {path.parent}; make it first")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"log={path}: nothing can be written in {path.parent}")
    if not path.exists():
        return
    version = version_of(path)
    if version is None:
        raise InputError(
            f"log={path} is there and is no log of a farm: it is never replaced; choose another name"
        )
    if not overwrite:
        raise InputError(
            f"log={path} is there, a log of version {version}: give --overwrite (overwrite=true), "
            "or another name"
        )


def side_files(path: Path) -> list[Path]:
    """The files that SQLite keeps next to a database while it is open."""
    return [path.with_name(f"{path.name}-{end}") for end in ("wal", "shm")]


def remove(path: Path) -> None:
    for file in (path, *side_files(path)):
        file.unlink(missing_ok=True)


class Database:
    """An open log; used by one thread at a time."""

    def __init__(self, storage: Storage, facts: Mapping[str, object]) -> None:
        """Replaces what is there: `check_place` has been asked."""
        self.storage = storage
        self.rows = self.env_steps = self.flushes = self.pages_written = 0
        self.bytes = 0
        """Of the database, once what is in the WAL is moved into it."""
        self._frames, self._salt = 0, b""
        self._profile = PROFILES[storage.profile]
        try:
            remove(storage.path)
            self._connection = self._open()
            create(self._connection, facts)
        except (sqlite3.Error, OSError) as error:
            raise InputError(f"log={storage.path} cannot be written: {error}") from None

    def _open(self) -> sqlite3.Connection:
        place = ":memory:" if self.storage.in_memory else str(self.storage.path)
        connection = sqlite3.connect(
            place,
            timeout=self.storage.patience_s,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=64,
        )
        profile = self._profile
        for pragma in (
            f"page_size = {PAGE_BYTES}",
            "journal_mode = WAL",
            "wal_autocheckpoint = 0",
            f"synchronous = {profile.synchronous}",
            f"cache_size = -{profile.cache_kib}",
            f"temp_store = {profile.temporary}",
            *([f"max_page_count = {self.storage.most_pages}"] if self.storage.most_pages else []),
        ):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def write(self, written: LoggedRows, *, singly: bool) -> None:
        """Add what steps came to, in one transaction or row by row; sqlite3.Error where that fails."""
        with self._transaction(singly=singly):
            for table, columns in written.inserted:
                self.rows += self._insert(table, columns, AT_ONCE[-1:] if singly else AT_ONCE)
            self._connection.executemany(DEATH, written.deaths)
            self._connection.executemany(END, written.ended)
        self.flushes += 1
        self.env_steps += written.env_steps
        self._measure()

    @contextmanager
    def _transaction(self, *, singly: bool) -> Iterator[None]:
        if singly:
            yield
            return
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _insert(self, table: LogTable, columns: Columns, sizes: Sequence[int]) -> int:
        """Add rows given as columns; returns how many."""
        width, count = len(columns), len(columns[0])
        if not count:
            return 0
        cells: list[Any] = [None] * (width * count)
        for k, column in enumerate(columns):
            cells[k::width] = column if isinstance(column, list) else column.tolist()  # type: ignore[union-attr]
        at = 0
        for size in sizes:
            statement, step = table.insertion(size), size * width
            while at + step <= len(cells):
                self._connection.execute(statement, cells[at : at + step])
                at += step
        return count

    def _measure(self) -> None:
        """Count what went into the WAL, and move it into the database where it is much."""
        [(pages,)] = self._connection.execute("PRAGMA page_count")
        self.bytes = pages * PAGE_BYTES
        if self.storage.in_memory:
            self.pages_written = pages
            return
        _, index = side_files(self.storage.path)
        with index.open("rb") as file:
            head = file.read(48)
        frames, salt = int.from_bytes(head[16:20], "little"), head[32:40]
        self.pages_written += frames - (self._frames if salt == self._salt else 0)
        self._frames, self._salt = frames, salt
        if frames >= self._profile.checkpoint_pages:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        """Leave one whole file; from memory it is copied beside its place and then put there."""
        with closing(self._connection) as connection:
            if not self.storage.in_memory:
                return
            part = self.storage.path.with_name(f".{self.storage.path.name}.part")
            remove(part)
            try:
                with closing(sqlite3.connect(part)) as copy:
                    connection.backup(copy)
                part.replace(self.storage.path)
            finally:
                remove(part)


Trouble = (sqlite3.Error, OSError)  # What a disk or a database may come with


class Direct:
    """Writes at once, in the thread that steps."""

    waits = wait_ns = 0

    def __init__(self, write: Callable[[Stretch], None]) -> None:
        self._write = write
        self.trouble: Exception | None = None

    def put(self, item: Stretch) -> None:
        if self.trouble is None:
            try:
                self._write(item)
            except Trouble as error:
                self.trouble = error

    def drain(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing waits."""


class Background:
    """A thread and the queue before it; a full queue makes the stepping thread wait, and nothing is dropped.

    After trouble the thread takes what comes and writes none of it, so that no step waits for ever; a fault
    is trouble, too, and raised by the next step.
    """

    def __init__(self, write: Callable[[Stretch], None], places: int) -> None:
        self._write = write
        self._queue: Queue[Stretch | None] = Queue(places)
        self.trouble: Exception | None = None
        self.waits = self.wait_ns = 0
        self._thread = threading.Thread(target=self._run, name="hotloop-log", daemon=True)
        self._thread.start()

    def put(self, item: Stretch) -> None:
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
            except Exception as error:  # noqa: BLE001 - the stepping thread raises it
                self.trouble = error
            finally:
                self._queue.task_done()


# Why a run ended; whose reason is not written was killed.
EXTINCT, PLAYED, CUT_OFF, STOPPED = "nobody is left", "max_steps were played", "cut off", "stopped"

numbered = count(1)


class LogError(HotloopError):
    """The log cannot be written, and the run is not to go on without it."""


class FarmLog:
    """What `RunLog` says; the database is made when the first episode begins."""

    def __init__(self, parameters: Parameters, run: LoggedRun) -> None:
        self._parameters, self._run = parameters, run
        path = Path(parameters.log).expanduser()
        if path.is_dir():  # each run has a database of its own there
            path = free_path(path / f"run-{os.getpid()}-{next(numbered)}.db")
        self._storage = Storage(
            path=path,
            profile=parameters.log_profile,
            in_memory=parameters.log_storage == "memory",
            most_pages=parameters.log_pages,
            patience_s=parameters.log_patience,
        )
        check_place(self._storage.path, overwrite=parameters.overwrite)
        self._tabulator = Tabulator(TYPES, parameters.node_cap)
        self._database: Database | None = None
        self._writer: Background | Direct | None = None
        self._runs = Runs(run.num_envs, parameters.agents)
        self._waiting: list[Snapshot] = []
        self._waiting_rows = self._noted = 0
        self._is_off = False

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
        what = f"log={self._storage.path} cannot be written any more: {trouble}"
        if self._parameters.log_trouble == "go_on":
            sys.stderr.write(f"{what}; the run goes on without it\n")
            return
        kept = ", and what was written before is there" if self._storage.path.exists() else ""
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
