"""The page on engines leads to its answers on a stranger's engine, in at most five commands."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.pages import ROOT, blocks

from hotloop.cli.main import main
from hotloop.core.errors import ExitCode

COMMANDS = [
    command for block in list(blocks(ROOT / "docs/grid-engines.md"))[:1] for command in block.commands
]

METTAGRID = "HOTLOOP_METTAGRID"
"""The variable that names a Python with mettagrid and Hotloop."""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of somebody's with the engine and its training in a commit, and its programs on the path."""
    for name in ("grid.py", "train.py"):
        shutil.copy(ROOT / "tests/zoo/owner_grid" / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / ".gitignore").write_text("artifacts\n.design\n__pycache__\n")
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "one"), ("tag", "one")):
        subprocess.run(["git", *words], check=True)
    return tmp_path


@pytest.mark.slow
def test_the_recipe_says_if_the_encoder_is_equal_and_how_much_faster(
    engine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(COMMANDS) == 5
    profile, compare, trainings, shadow, bench = (shlex.split(command)[1:] for command in COMMANDS)
    assert main([*profile, "--steps", "500"]) in (ExitCode.FINE, ExitCode.UNSTABLE)
    told = capsys.readouterr().out
    assert re.search(r"observations +[\d,]+ +[\d.]+ +\d+\.\d% +\d+\.\d%", told)
    assert "of its step" in told
    assert main([*compare, "--budget", "2", "--json"]) == ExitCode.FINE
    [compared] = json.loads(capsys.readouterr().out)["comparisons"]
    assert (compared["difference"], compared["outcome"]) == (None, "faster")
    [phase] = [each for each in compared["phases"] if each["phase"] == "observations"]
    assert phase["ratio"]["low"] > 2
    assert compared["b"]["path"]["counters"]["original_encodes"] == 0
    short = [f"{word} --steps 60" if word.startswith("python train") else word for word in trainings]
    assert main(["compare", "--budget", "4", *short[1:]]) in (ExitCode.FINE, ExitCode.CANNOT_TELL)
    assert "times as fast" in capsys.readouterr().out
    words = [sys.executable, *shadow, "--steps", "300"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.FINE, done.stderr
    assert "4,832 comparisons, 0 mismatches" in done.stderr
    slower = (engine / "grid.py").read_text().replace("self.ticks += 1", "self.ticks += 1; sum(range(9000))")
    (engine / "grid.py").write_text(slower)
    planned = [word.replace("HEAD~1", "one") for word in bench]
    assert main([*planned, "--quick", "--json"]) == ExitCode.REGRESSION
    [compared] = json.loads(capsys.readouterr().out)["comparisons"]
    assert compared["outcome"] == "slower"
    assert compared["cpu"] is not None


def test_a_training_whose_new_path_is_wrong_ends_with_2(engine: Path) -> None:
    words = [sys.executable, "train.py", "--shadow", "true", "--steps", "100", "--wrong-after", "500"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=engine)
    assert done.returncode == ExitCode.MISMATCH
    assert "MISMATCH at step" in done.stderr
    assert "observations[0, 15, 0, 0]" in done.stderr


@pytest.mark.skipif(METTAGRID not in os.environ, reason=f"{METTAGRID} names no Python with mettagrid")
def test_the_engine_from_pypi_goes_the_same_way(tmp_path: Path) -> None:
    example = ROOT / "examples/mettagrid.py"
    sides = [f"{example}:make agents=4 size=12{more}" for more in (" encoder=original", " encoder=optimized")]
    words = ["compare", *sides, "--profile", "--phases", f"{example}:engine", "--budget", "2", "--json"]
    done = subprocess.run(
        [os.environ[METTAGRID], "-m", "hotloop", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    [compared] = json.loads(done.stdout)["comparisons"]
    assert compared["difference"] is None
    assert "observations" in [each["phase"] for each in compared["phases"]]
