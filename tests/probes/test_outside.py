"""Samples from outside tell how much of the time each function takes; those from inside say what they are."""

import os
import signal
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from support.scenes import scene, turn

from hotloop.core.record.profile import Finding
from hotloop.core.registry import ProbeError
from hotloop.probes import pyspy, samples
from hotloop.probes import pyspy as outside
from hotloop.probes.pyspy import OutsideSampler


def shares(found: Finding) -> dict[str, float]:
    return {row[0].partition(" ")[0]: row[1] for row in found.tables[-1].rows}


def test_a_play_is_sampled_from_outside_and_its_cpu_time_from_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "SHORTEST_NS", 100_000_000)
    found = samples.look(scene(tmp_path, turn, calls=500, marker="played"))
    if samples.INSIDE in found.facts:
        pytest.skip(f"NOT TESTED: {found.facts[samples.INSIDE]}")
    assert samples.notices_of(found) == ()
    (row,) = (row for row in found.tables[-1].rows if row[0].startswith("slow "))
    assert row[1] > 0.5
    assert row[5] is not None
    assert {path.name for path in tmp_path.iterdir()} == set(found.files)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A py-spy whose behavior a test writes."""
    path = tmp_path / "py-spy"

    def find() -> str:
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    monkeypatch.setattr(pyspy, "find", find)
    return path


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'Error: Permission denied (os error 13)'; exit 1", "may not read the memory"),
        ("echo 'py-spy> Sampling process'; sleep 0.2; exit 1", "py-spy"),
        ("echo 'Error: No such process'; exit 1", "ended before py-spy"),
    ],
)
def test_a_py_spy_that_may_not_look_or_dies_leaves_the_samples_from_inside_with_a_warning(
    script: str, why: str, fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.write_text(f"#!/bin/sh\n{script}\n")
    monkeypatch.setattr(samples, "OUTSIDE_NS", 0)
    monkeypatch.setattr(samples, "SHORTEST_NS", 50_000_000)
    found = samples.look(scene(tmp_path, turn, marker="played"))
    assert "slow" in shares(found)
    (said,) = samples.notices_of(found)
    assert said.code == "sampled-inside"
    assert why in said.text


def test_without_py_spy_the_warning_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyspy, "find", lambda: None)
    monkeypatch.setattr(samples, "SHORTEST_NS", 50_000_000)
    (said,) = samples.notices_of(samples.look(scene(tmp_path, turn, marker="played")))
    assert "pip install" in said.remedy


def test_a_process_that_dies_meanwhile_is_no_hang(tmp_path: Path) -> None:
    program = "import time\nwhile time.sleep(0.001) is None: pass"
    process = subprocess.Popen([sys.executable, "-c", program])
    with process, suppress(ProbeError), OutsideSampler(tmp_path / "x.json", process.pid):
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGKILL


def test_a_silent_py_spy_is_given_up(fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(outside, "BEGIN_S", 0.05)
    with pytest.raises(ProbeError), OutsideSampler(tmp_path / "x.json", os.getpid()):
        pass


def test_threads_that_wait_and_the_sampler_inside_are_left_out_of_a_program(tmp_path: Path) -> None:
    main, side = ("main", "/me/x.py", 1), ("Thread._bootstrap", "/usr/lib/threading.py", 2)
    inside = ("Timer._hear", outside.SAMPLER, 3)
    process = ('process 12:"python x.py"', "", 0)
    seconds = {(process, main): 1.0, (process, side, main): 2.0, (process, main, inside): 3.0}
    outside.stacks.write(tmp_path / "x.json", "x", seconds)
    assert outside.read_counts(tmp_path / "x.json", only_main=True) == {(main,): outside.OUTSIDE_RATE}
    assert (side, main) in outside.read_counts(tmp_path / "x.json", only_main=False)


def test_a_comprehension_of_several_lines_is_one_function_and_the_next_one_another(tmp_path: Path) -> None:
    program = tmp_path / "x.py"
    program.write_text(
        "def f():\n    a = [\n        x\n        for x in y\n    ]\n    return [x for x in a]\n"
    )
    stacks = [(("f.<locals>.<listcomp>", str(program), line),) for line in (2, 3, 4, 6)]
    named = {outside.name_frames(stack)[0] for stack in stacks}
    assert named == {("f.<listcomp>", str(program), line) for line in (2, 6)}
    assert outside.first_line(str(tmp_path / "gone.py"), 7) == 7
