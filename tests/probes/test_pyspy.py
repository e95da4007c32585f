import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.scenes import quick, scene

from hotloop.core.errors import InputError
from hotloop.core.record import stacks
from hotloop.core.registry import ProbeError
from hotloop.probes import pyspy
from hotloop.probes.pyspy import check_pid, describe, failure, inside, look, why_not

MAIN, PLAY, STEP = ("main", "m.py", 1), ("drawn.<locals>.played", "p.py", 2), ("Env.step", "/a/env.py", 3)
LATER = ("Env.step", "/a/env.py", 8)
SECONDS = {(MAIN,): 1.0, (MAIN, PLAY): 0.5, (MAIN, PLAY, STEP): 1.0, (MAIN, PLAY, LATER): 0.5}

PROGRAM = """
import math, time
def slow():
    for number in range(3000): math.sqrt(number)
def played():
    end = time.perf_counter() + 1.5
    while time.perf_counter() < end: slow()
played()
"""


def test_only_what_ran_below_the_play_is_kept() -> None:
    assert inside(SECONDS, "played") == {(PLAY,): 0.5, (PLAY, STEP): 1.0, (PLAY, LATER): 0.5}
    assert inside(SECONDS, "other") == {}


def test_functions_are_counted_whatever_their_line_and_recursion_once() -> None:
    found = describe({(PLAY, STEP): 1.0, (PLAY, LATER): 0.5, (PLAY, STEP, STEP): 0.5, (PLAY,): 2.0})
    rows = {row[0]: row[1:] for row in found.tables[0].rows}
    around = "[46.5%, 53.5%]"
    assert rows["Env.step (a/env.py:3)"] == (400, 0.5, around, 0.5, around)
    assert rows["drawn.<locals>.played (p.py:2)"] == (400, 0.5, around, 1.0, "[99.5%, 100.0%]")
    assert found.facts["samples"] == 800


def test_two_comprehensions_of_one_function_are_two_rows() -> None:
    first, second = (("f.<locals>.<listcomp>", "/a/env.py", line) for line in (8, 9))
    found = describe({(first,): 3.0, (second,): 1.0})
    assert [row[2] for row in found.tables[0].rows] == [0.75, 0.25]


@pytest.mark.parametrize(
    ("said", "why", "remedy"),
    [
        (
            "Error: Permission Denied: Try running again with elevated permissions",
            "may not read",
            "SYS_PTRACE",
        ),
        ("Error: Operation not permitted (os error 1)", "may not read", "ptrace_scope"),
        ("Error: Failed to get process executable name. Check that the process is running", "ended", "pid"),
        ("Error: Failed to find python version from target process", "no Python", "a shell around it"),
        ("Error: unsupported version", "unsupported version", "by hand"),
        ("", "it said: nothing", "by hand"),
    ],
)
def test_what_py_spy_says_becomes_a_reason_and_a_remedy(said: str, why: str, remedy: str) -> None:
    obstacle = failure(said).obstacle
    assert why in obstacle.why
    assert remedy in obstacle.remedy


def test_a_process_that_is_not_there_is_refused() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    for pid in (ended.pid, 2**40):
        with pytest.raises(InputError, match=str(pid)):
            check_pid(pid)
    check_pid(os.getpid())


def test_without_the_package_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspy, "find", lambda: None)
    obstacle = why_not()
    assert obstacle is not None
    assert "[profile]" in obstacle.remedy


def fake(folder: Path, text: str) -> str:
    program = folder / "py-spy"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return str(program)


def test_a_refusal_is_an_obstacle_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = fake(tmp_path, "echo 'Permission Denied' >&2; exit 1")
    monkeypatch.setattr(pyspy, "find", lambda: program)
    with pytest.raises(ProbeError, match="may not read the memory"):
        look(scene(tmp_path, quick, program=("-c", ""), marker="played"))


def allowed() -> bool:
    """Whether py-spy may look at processes here."""
    program = pyspy.find()
    words = [program or "", "dump", "--pid", str(os.getpid())]
    return bool(program) and not subprocess.run(words, capture_output=True, check=False).returncode


permitted = pytest.mark.skipif(not allowed(), reason="py-spy may not look at processes here")


@permitted
@pytest.mark.slow
def test_a_slow_function_is_the_first_row_and_start_up_is_none(tmp_path: Path) -> None:
    found = look(scene(tmp_path, quick, program=("-c", PROGRAM), marker="played"))
    rows = {row[0].split(" ")[0]: row for row in found.tables[0].rows}
    assert rows["slow"][4] > 0.7
    assert all(row[4] <= 1.0 for row in found.tables[0].rows)
    kept = stacks.read(tmp_path / "pyspy.speedscope.json")
    assert {stack[0][0] for stack in kept} == {"played"}


@permitted
@pytest.mark.slow
def test_a_program_that_never_plays_is_an_obstacle(tmp_path: Path) -> None:
    idle = "import time; end = time.perf_counter() + 1\nwhile time.perf_counter() < end: pass"
    with pytest.raises(ProbeError, match="no step of the play"):
        look(scene(tmp_path, quick, program=("-c", idle), marker="played"))


def test_a_flame_begins_with_the_code_of_the_user() -> None:
    ours = ("played", f"{pyspy.OURS}/lab/profile/probes.py", 1)
    native, step = ("_PyEval", "", 0), ("step", "/me/env.py", 2)
    assert pyspy.without_ours({(ours, native, step): 1.0, (ours,): 2.0}) == {(step,): 1.0, (ours,): 2.0}
