"""A stranger's loop with something wrong in it: what was planted is named first, whether small or large."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.cli.main import main
from hotloop.core.errors import ExitCode

PROGRAM = Path(__file__).parents[2] / "zoo" / "planted_loops.py"

NAMED = {"leak": "growth", "decay": "decay", "teacher": "teacher", "eval": "eval"}


def first_of(
    bug: str, size: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[list[str], dict[str, object]]:
    """Run the program as its owner does; return the rules that speak, and the first advice."""
    shutil.copy(PROGRAM, folder)
    done = subprocess.run(
        [sys.executable, PROGRAM.name, bug, size], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert main(["diagnose", "--quick", "--json"]) == ExitCode.FINE
    told = json.loads(capsys.readouterr().out)
    return [each["rule"] for each in told["candidates"]], next(iter(told["candidates"]), {})


@pytest.mark.long
@pytest.mark.parametrize("size", ["small", "medium", "large"])
@pytest.mark.parametrize("bug", NAMED)
def test_what_was_planted_is_named_first(
    bug: str,
    size: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    rules, first = first_of(bug, size, tmp_path, capsys)
    assert rules[:1] == [NAMED[bug]]
    if bug == "teacher":
        assert str(first["said"]).startswith("in updates 1 to 1")


@pytest.mark.long
def test_a_loop_in_which_nothing_is_planted_has_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rules, _ = first_of("none", "small", tmp_path, capsys)
    assert rules == []
