"""The database that a log is written to: its pragmas, its transactions, and what they wrote."""

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.core.errors import InputError
from hotloop.worlds.farm.log.rows import AGENTS, SIMULATIONS, Columns, Table, Written, create, version_of

# Rows of one statement. Each statement hands Python's lock over and back, so that whoever steps gets it.
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
    patience_s: float = 5.0  # How long to wait for whoever has locked it


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


def beside(path: Path) -> list[Path]:
    """The files that SQLite keeps next to a database while it is open."""
    return [path.with_name(f"{path.name}-{end}") for end in ("wal", "shm")]


def remove(path: Path) -> None:
    for file in (path, *beside(path)):
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

    def write(self, written: Written, *, singly: bool) -> None:
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

    def _insert(self, table: Table, columns: Columns, sizes: Sequence[int]) -> int:
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
        with self._wal_index().open("rb") as file:
            head = file.read(48)
        frames, salt = int.from_bytes(head[16:20], "little"), head[32:40]
        self.pages_written += frames - (self._frames if salt == self._salt else 0)
        self._frames, self._salt = frames, salt
        if frames >= self._profile.checkpoint_pages:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _wal_index(self) -> Path:
        return beside(self.storage.path)[1]

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
