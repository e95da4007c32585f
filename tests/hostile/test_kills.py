"""A command and its processes, killed and interrupted at random moments: nothing unreadable, no orphan."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from support.apart import MARK, PATIENCE_S, check_no_orphan, running

from hotloop.core.errors import ExitCode
from hotloop.core.process.guard import parent_of
from hotloop.core.record import read

TARGET = f"{Path(__file__).parents[1] / 'support' / 'hostile_env.py'}:make"

LATEST_S = 4.0
"""After the start: about when the command would end by itself."""

IN_PARTS, KILLS, INTERRUPTIONS = 10, 20, 10

CODE = "import sys; from hotloop.cli.main import main; sys.exit(main())"


BENCH = (
    *("bench", TARGET, "how=process", "at=20", "--output", "."),
    *("--rounds", "400", "--iterations", "50", "--warmup", "0"),
)
"""Of an env that starts a process of its own in its first steps."""

NEWER = {
    "gate": ("gate", "--output", "."),
    "suite": ("bench", "--suite", "s", "--output", "."),
    "scale": ("scale", TARGET, "how=process", "at=20", "size=1,2,3", "--output", "."),
    "soak": ("soak", TARGET, "how=process", "at=20", "--steps", "200000", "--output", "."),
}
"""The same by others."""

PROJECT = f"""
[budget.b]
target = "{TARGET}"
keys = {{how = "process", at = 20}}
metric = "env_steps_per_s"
limit = 1
[suite.s]
items = [{{target = "{TARGET}", keys = {{how = "process", at = 20}}}}, {{target = "{TARGET}"}}]
"""


def command(words: Sequence[str], folder: Path, mark: str) -> "subprocess.Popen[bytes]":
    variables = {name: value for name, value in os.environ.items() if name != "HOTLOOP_IN_PROCESS"}
    return subprocess.Popen(
        [sys.executable, "-c", CODE, *words],
        cwd=folder,
        env={**variables, MARK: mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def below(pid: int) -> Iterator[int]:
    """A process, its guard and what that watches over, as far as they are there."""
    found: int | None = pid
    while found is not None:
        yield found
        found = next((int(name) for name in running() if parent_of(name) == found), None)


def check_nothing_left(mark: str, folder: Path) -> None:
    check_no_orphan(mark)
    for path in folder.glob("*.json"):
        if not path.name.startswith("suite-"):
            read(path)


def strike(
    chance: random.Random, number: int, folder: Path, depth: int, mark: str, words: Sequence[str] = BENCH
) -> int:
    """Start a command and send a signal to it, or to what is below it, some time later; its exit code."""
    process = command(words, folder, mark)
    with suppress(subprocess.TimeoutExpired):
        process.wait(chance.uniform(0, LATEST_S))
    struck = list(below(process.pid))[: depth + 1]
    with suppress(ProcessLookupError):
        os.kill(struck[-1], number)
    try:
        return process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait()


@pytest.mark.hostile
@pytest.mark.parametrize("part", range(IN_PARTS))
def test_kills_leave_nothing_unreadable_and_no_orphan(part: int, tmp_path: Path) -> None:
    chance = random.Random(part)
    for each in range(KILLS):
        mark = f"{os.getpid()}-{part}-{each}"
        strike(chance, signal.SIGKILL, tmp_path, chance.randrange(3), mark)
        check_nothing_left(mark, tmp_path)


@pytest.mark.hostile
@pytest.mark.parametrize("part", range(IN_PARTS))
def test_interruptions_leave_nothing_unreadable_and_no_orphan(part: int, tmp_path: Path) -> None:
    chance = random.Random(1000 + part)
    for each in range(INTERRUPTIONS):
        mark = f"{os.getpid()}-i{part}-{each}"
        number = chance.choice([signal.SIGINT, signal.SIGTERM])
        code = strike(chance, number, tmp_path, chance.choice([0, 2]), mark)
        assert code not in (ExitCode.MISMATCH, ExitCode.REGRESSION, ExitCode.FAULT)
        check_nothing_left(mark, tmp_path)


@pytest.mark.hostile
@pytest.mark.parametrize("name", NEWER)
def test_whatever_is_struck_leaves_nothing_unreadable_and_no_orphan(name: str, tmp_path: Path) -> None:
    chance = random.Random(name)
    (tmp_path / "hotloop.toml").write_text(PROJECT)
    for each in range(INTERRUPTIONS):
        mark = f"{os.getpid()}-{name}-{each}"
        number = chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
        code = strike(chance, number, tmp_path, 0, mark, NEWER[name])
        assert code not in (ExitCode.MISMATCH, ExitCode.FAULT)
        check_nothing_left(mark, tmp_path)
