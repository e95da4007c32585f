"""Functions that own a known 2, 5 and 20% of the CPU time, as a user profiles them: within 1.5 points."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.core.record import Record, read
from hotloop.core.record.profile import Table
from hotloop.core.record.stacks import read as read_stacks
from hotloop.probes.pyspy import OURS, why_not

ZOO = Path(__file__).parents[1] / "zoo"

PROGRAM = "shares.py"

SECONDS = "12"

LARGEST_KNOWN = 0.25
"""Of a function whose share the program sets."""

pytestmark = [pytest.mark.long, pytest.mark.skipif(why_not() is not None, reason="py-spy is not installed")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    if os.getloadavg()[0] > (os.cpu_count() or 1) + 1:
        pytest.skip("NOT TESTED: a busy machine leaves a program too few moments to sample")
    (tmp_path / PROGRAM).write_text((ZOO / PROGRAM).read_text())
    return tmp_path


def profile(folder: Path, *words: str) -> Record:
    """Return the record of a profile as a user makes one."""
    command = [sys.executable, "-m", "hotloop", "profile", *words]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
    (path,) = (each for each in (folder / ".design").glob("profile-*.json") if each.stem.count(".") == 0)
    return read(path)


def known(folder: Path) -> dict[str, float]:
    """Return what the functions took by the program's own clock; run it if it has not run."""
    path = folder / "known.json"
    if not path.exists():
        subprocess.run([sys.executable, PROGRAM, "3", path.name], cwd=folder, check=True)
    return dict(json.loads(path.read_text()))


def tables(record: Record) -> tuple[Table, ...]:
    (found,) = (each for each in record.findings if each.probe == "samples")
    return found.tables


def check(record: Record, folder: Path) -> None:
    """Hold the own shares and their intervals against what is known."""
    columns = tables(record)[-1].columns
    rows = [dict(zip(columns, row, strict=True)) for row in tables(record)[-1].rows]
    named = {row["function"].partition(" ")[0]: row for row in rows}
    for name, share in known(folder).items():
        if share > LARGEST_KNOWN:
            continue  # the function that the program spends the rest in, read at other moments
        assert named[name]["own_share"] == pytest.approx(share, abs=0.015), name
        low, high = (
            float(end.rstrip("%")) / 100 for end in named[name]["own_interval"].strip("[]").split(", ")
        )
        assert low <= named[name]["own_share"] <= high
    (flames,) = (folder / ".design").glob("*.samples.speedscope.json")
    assert not any(stack[0][1].startswith(OURS) for stack in read_stacks(flames))


def test_the_shares_of_a_program_are_within_a_point_and_a_half(folder: Path) -> None:
    check(profile(folder, "--", sys.executable, PROGRAM, SECONDS, "known.json"), folder)


def test_the_shares_of_an_env_are_within_a_point_and_a_half(folder: Path) -> None:
    check(profile(folder, f"{PROGRAM}:Env"), folder)


def test_the_shares_of_a_running_process_are_and_threads_that_wait_are_idle(folder: Path) -> None:
    words = [sys.executable, PROGRAM, SECONDS, "known.json"]
    with subprocess.Popen(words, cwd=folder) as process:
        record = profile(folder, "--pid", str(process.pid), "--seconds", "8")
        process.wait()
    check(record, folder)
    idle = {row[0].partition(" ")[0]: row[2] for row in tables(record)[0].rows}
    assert set(idle) == {"MainThread", "sleeper", "dreamer"}
    assert min(idle["sleeper"], idle["dreamer"]) > 0.99
    assert idle["MainThread"] < 0.9
