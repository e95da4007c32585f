"""A log that cannot be written says so; one whose process was killed opens, and is a prefix of the truth."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.farm_log import play, rows_of

import hotloop
from hotloop.cli.main import main
from hotloop.core.errors import InputError
from hotloop.envs.batch import OrderError
from hotloop.envs.cuda import DeviceBatch
from hotloop.envs.open import with_log
from hotloop.worlds.farm import log
from hotloop.worlds.farm.log import Background, LogError
from hotloop.worlds.farm.log.rows import VERSION, Stretch

SMALL: dict[str, Any] = {"num_envs": 1, "perception": False}


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Somebody else has the database for writing."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


@pytest.mark.parametrize("writer", ["thread", "caller"])
def test_a_full_disk_stops_the_run_and_says_so(writer: str, tmp_path: Path) -> None:
    log = tmp_path / "run.db"
    with pytest.raises(LogError, match=r"run\.db cannot be written any more: database or disk is full"):
        play(log, 400, log_pages=40, log_buffer=200, log_writer=writer, **SMALL)
    steps = [row[1] for row in rows_of(log, "simulation_steps")]
    assert steps == list(range(1, len(steps) + 1))
    assert len(steps) > 5


def test_a_run_goes_on_without_its_log_where_it_may(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counted = play(tmp_path / "run.db", 400, log_pages=40, log_buffer=200, log_trouble="go_on", **SMALL)
    assert counted["env_steps"] == 400
    written = len(rows_of(tmp_path / "run.db", "simulation_steps"))
    assert counted["log.lost_steps"] == 400 - written > 0
    assert "the run goes on without it" in capsys.readouterr().err


@pytest.mark.parametrize("trouble", ["stop", "go_on"])
def test_a_locked_database_is_trouble(trouble: str, tmp_path: Path) -> None:
    keys = {"log_patience": 0.0, "log_buffer": 1, "log_writer": "caller", "log_trouble": trouble}
    with closing(hotloop.make("farm/dev", log=str(tmp_path / "run.db"), **SMALL, **keys)) as batch:
        batch.reset()
        batch.step(batch.choose("random"))
        with locked(tmp_path / "run.db"):
            if trouble == "stop":
                with pytest.raises(LogError, match="database is locked; the run has stopped"):
                    batch.step(batch.choose("random"))
            else:
                batch.step(batch.choose("random"))
        assert batch.counters["log.lost_steps"] == 1
    assert [row[1] for row in rows_of(tmp_path / "run.db", "simulation_steps")] == [1]


def test_trouble_at_the_very_end_is_said_too(tmp_path: Path) -> None:
    batch = hotloop.make("farm/dev", log=str(tmp_path / "run.db"), log_patience=0.0, **SMALL)
    batch.reset()
    batch.step(batch.choose("random"))
    with locked(tmp_path / "run.db"), pytest.raises(LogError, match="locked"):
        batch.close()


@pytest.mark.parametrize("trouble", ["stop", "go_on"])
def test_a_log_that_cannot_be_copied_from_memory_is_trouble_and_leaves_nothing(
    trouble: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = {"log_storage": "memory", "log_trouble": trouble}
    batch = hotloop.make("farm/dev", log=str(tmp_path / "run.db"), **SMALL, **keys)
    batch.reset()
    batch.step(batch.choose("random"))
    monkeypatch.setattr(log.sqlite3, "connect", on_a_full_disk)
    if trouble == "stop":
        with pytest.raises(LogError, match="disk is full"):
            batch.close()
    else:
        batch.close()
        assert "disk is full; the run goes on without it" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def on_a_full_disk(path: Path) -> sqlite3.Connection:
    """A database that a page fits into."""
    connection = sqlite3.Connection(path)
    connection.execute("PRAGMA max_page_count = 1")
    return connection


def test_a_log_in_memory_that_is_full_is_copied_as_far_as_it_goes(tmp_path: Path) -> None:
    log = tmp_path / "run.db"
    with pytest.raises(LogError, match="database or disk is full"):
        play(log, 400, log_pages=40, log_buffer=200, log_storage="memory", **SMALL)
    steps = [row[1] for row in rows_of(log, "simulation_steps")]
    assert steps == list(range(1, len(steps) + 1))
    assert len(steps) > 5


def test_a_fault_of_the_writing_thread_is_raised_and_nobody_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(log.Database, "write", broken)
    with pytest.raises(ZeroDivisionError, match="planted"):
        play(tmp_path / "run.db", 400, log_buffer=1, log_queue=1, **SMALL)


def test_a_full_queue_makes_the_run_wait_and_drops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, may_write, written = threading.Event(), threading.Event(), list[Stretch]()
    one, two, three = (Stretch(steps=(), ended=((steps, "cut off", 0),)) for steps in (1, 2, 3))

    def write(item: Stretch) -> None:
        taken.set()
        may_write.wait()
        written.append(item)

    writer = Background(write, 1)
    put = writer._queue.put

    def put_and_let_write(item: Stretch | None, block: bool = True) -> None:
        if block:
            may_write.set()
        put(item, block)

    writer.put(one)
    taken.wait()
    writer.put(two)
    monkeypatch.setattr(writer._queue, "put", put_and_let_write)
    writer.put(three)
    writer.drain()
    writer.close()
    assert written == [one, two, three]
    assert writer.waits == 1
    assert writer.wait_ns > 0


def test_what_is_there_is_replaced_only_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "run.db"
    sim = ["sim", "farm/dev", "steps=3", "perception=false", f"log={log}", "--output", str(tmp_path)]
    assert main(sim) == 0
    assert main(sim) == 64
    assert "is there, a log of version 1: give --overwrite" in capsys.readouterr().err
    assert main([*sim, "--overwrite"]) == 0
    assert len(rows_of(log, "simulation_steps")) == 3


def test_what_is_no_log_is_never_replaced(tmp_path: Path) -> None:
    thesis = tmp_path / "thesis.db"
    with closing(sqlite3.connect(thesis)) as other:
        other.execute("CREATE TABLE chapters (text)")
    with pytest.raises(InputError, match="is no log of a farm: it is never replaced"):
        hotloop.make("farm/dev", log=str(thesis), overwrite=True, **SMALL)


@pytest.mark.parametrize("place", ["nowhere/run.db", "/proc/run.db"])
def test_a_place_that_cannot_be_written_is_refused(place: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="log="):
        hotloop.make("farm/dev", log=str(tmp_path / place), **SMALL).reset()


def test_a_folder_gets_a_log_for_each_run(tmp_path: Path) -> None:
    for _ in range(2):
        play(tmp_path, 2, **SMALL)
    assert len(list(tmp_path.glob("run-*.db"))) == 2


def test_a_batch_that_never_began_leaves_nothing(tmp_path: Path) -> None:
    hotloop.make("farm/dev", log=str(tmp_path / "run.db"), **SMALL).close()
    assert list(tmp_path.iterdir()) == []


def test_a_run_with_a_log_is_played_from_its_beginning(tmp_path: Path) -> None:
    with closing(hotloop.make("farm/dev", log=str(tmp_path / "run.db"), **SMALL)) as batch:
        batch.reset()
        with pytest.raises(OrderError, match="plays every episode from its beginning"):
            batch.load(0, batch.save(0))


ENDLESS = """
import os, sys, hotloop
from hotloop.worlds.farm.log import Database

insert, left = Database._insert, int(sys.argv[3])

def dying(*words):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), 9)
    return insert(*words)

Database._insert = dying
batch = hotloop.make("farm/dev", num_envs=1, perception=False, log=sys.argv[1], **eval(sys.argv[2]))
batch.reset()
while True:
    batch.step(batch.choose("weighted"))
    sys.stdout.write(".")
    sys.stdout.flush()
"""


def killed_after(steps: int, log: Path, keys: dict[str, object]) -> None:
    """Play in a process of its own until it has made so many steps, and kill it wherever it then is."""
    program = [sys.executable, "-c", ENDLESS, str(log), repr(keys), "-1"]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert len(process.stdout.read(steps)) == steps
        os.kill(process.pid, signal.SIGKILL)


def killed_within(inserts: int, log: Path, keys: dict[str, object]) -> None:
    """Play until so many tables were added to, and kill it before the next one is."""
    program = [sys.executable, "-c", ENDLESS, str(log), repr(keys), str(inserts)]
    done = subprocess.run(program, stdout=subprocess.DEVNULL, check=False)
    assert done.returncode == -signal.SIGKILL


def check_prefix(log: Path, truth: Path, keys: dict[str, object]) -> int:
    """Hold a log that broke off against a whole one of the same run; returns its whole steps."""
    with closing(sqlite3.connect(log)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    whole = len(rows_of(log, "simulation_steps"))
    play(truth, whole + 1, **SMALL)
    partial = keys["log_buffer"] == 1
    for table in ("agent_actions", "health_incidents", "reproduction_events", "resource_states"):
        same_prefix(rows_of(log, table), rows_of(truth, table), whole, partial=partial)
    for table in ("agent_states", "simulation_steps"):
        same_prefix(rows_of(log, table), rows_of(truth, table), whole, partial=partial)
    same_lives(rows_of(log, "agents"), rows_of(truth, "agents"), whole, partial=partial)
    return whole


def same_prefix(
    broken: list[tuple[Any, ...]], true: list[tuple[Any, ...]], whole: int, *, partial: bool
) -> None:
    """The same as far as it goes: to its last whole step, and no further but for single rows."""
    assert broken == true[: len(broken)]
    assert partial or all(row[1] <= whole for row in broken)
    assert sum(row[1] <= whole for row in broken) == sum(row[1] <= whole for row in true)


def same_lives(
    broken: list[tuple[Any, ...]], true: list[tuple[Any, ...]], whole: int, *, partial: bool
) -> None:
    """Births and deaths up to the last whole step, and perhaps some of the next one row by row."""

    def until(row: tuple[Any, ...], step: int) -> tuple[Any, ...]:
        return row if row[9] is not None and row[9] <= step else (*row[:9], None, None)

    assert [until(row, whole) for row in broken if row[6] <= whole] == [
        until(row, whole) for row in true if row[6] <= whole
    ]
    assert partial or max(row[6] for row in broken) <= whole


WAYS = ({"log_buffer": 300}, {"log_buffer": 1, "log_writer": "caller"})


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=("transactions", "single rows"))
def test_a_killed_run_leaves_a_prefix_of_the_truth(way: dict[str, object], tmp_path: Path) -> None:
    log = tmp_path / "killed.db"
    killed_after(40, log, way)
    assert check_prefix(log, tmp_path / "truth.db", way) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=("transactions", "single rows"))
def test_a_run_killed_within_a_transaction_leaves_whole_steps(way: dict[str, object], tmp_path: Path) -> None:
    log = tmp_path / "killed.db"
    killed_within(26, log, way)
    assert check_prefix(log, tmp_path / "truth.db", way) >= 1


@pytest.mark.long
@pytest.mark.parametrize("moment", range(20))
def test_a_run_killed_at_twenty_moments_leaves_a_prefix_of_the_truth(moment: int, tmp_path: Path) -> None:
    chance = random.Random(moment)
    buffer = chance.choice((1, 50, 300, 5_000))
    profile = chance.choice(("balanced", "performance", "safety", "memory"))
    way = {"log_buffer": buffer, "log_profile": profile, "log_writer": chance.choice(("thread", "caller"))}
    log = tmp_path / "killed.db"
    killed_after(chance.randrange(1, 2_000), log, way)
    check_prefix(log, tmp_path / "truth.db", way)


def test_a_log_of_another_version_is_not_read(tmp_path: Path) -> None:
    from hotloop.worlds.farm.log.rows import open_log

    log = tmp_path / "run.db"
    play(log, 2, **SMALL)
    with closing(sqlite3.connect(log)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(
        InputError, match=f"is a log of version {VERSION + 1}, and this hotloop reads version"
    ):
        open_log(log)


def test_a_log_reads_arrays_of_the_host(tmp_path: Path) -> None:
    batch = hotloop.make("farm/dev", log=str(tmp_path / "run.db"), **SMALL)
    with closing(batch), pytest.raises(InputError, match="a log reads NumPy arrays: add host_views=true"):
        with_log(OnDevice(batch.engine, batch.spec))  # type: ignore[arg-type]


class OnDevice(DeviceBatch):
    """Arrays that are said to be a GPU's."""
