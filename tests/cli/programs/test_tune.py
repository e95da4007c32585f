"""tune of programs on the command line: a quick one, really run."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hotloop.core import project
from hotloop.core.errors import ExitCode
from hotloop.lab.gate import measure as gating
from hotloop.lab.programs import measure as programs
from hotloop.lab.sweep import tune
from hotloop.lab.sweep import tune as searching

Command = Callable[..., Any]

SCRIPT = """
import sys

def setting(name, usual):
    return int(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv else usual

envs, workers, seed = setting("--num-envs", 8), setting("--workers", 1), setting("--seed", 1)
if workers == 9:
    raise SystemExit("nine workers are too many")
print("SPS:", 100 * envs + 10 * workers)
print("reward:", -10)
print("reward:", -5 + seed / 100 - (envs == 64))
"""
SPS = ("--metric", r"sps=SPS: ([\d.]+)")
PYTHON = (sys.executable, "-S", "train.py")


@pytest.fixture(autouse=True)
def _script(hotloop: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script in the command's empty folder, run without a warm-up; a busy machine cuts no check short."""
    Path("train.py").write_text(SCRIPT)
    monkeypatch.setattr(programs, "WARMUP", 0)
    monkeypatch.setattr(tune, "LONGEST", 1e6)
    monkeypatch.setattr(searching, "LONGEST", 1e6)


def test_the_fastest_settings_are_confirmed_and_their_floor_is_a_budget_that_a_gate_meets(
    hotloop: Command,
) -> None:
    words = ("--num-envs", "{8,32}", "--workers", "{1,2,9}")
    said = hotloop("tune", *SPS, "--rounds", "1", "--write-floor", "sps", "--", *PYTHON, *words)
    assert said.code == ExitCode.FINE
    assert "num-envs=32 workers=2: faster, 3.975 [3.975, 3.975] times as fast" in said.out
    assert "present settings: " + shlex.join(PYTHON) in said.err
    assert "skipped num-envs=8 workers=9" in said.out
    assert "nine workers are too many" in said.out
    [budget] = project.read(Path("hotloop.toml")).budgets.values()
    assert budget.words == f"-- {shlex.join(PYTHON)} --num-envs 32 --workers 2"
    assert (budget.metric, budget.limit) == ("printed:sps", 3220.0)
    metric = gating.printed(budget)
    assert metric is not None
    assert metric.pattern.findall("SPS: 12.5") == ["12.5"]


def test_values_that_a_shell_expanded_are_read_all_the_same(hotloop: Command) -> None:
    words = ("--num-envs", "8", "16", "--workers=1", "--workers=2")
    said = hotloop("tune", *SPS, "--rounds", "1", "--json", "--", *PYTHON, *words)
    assert "the shell expanded the braces: num-envs=8,16 workers=1,2" in said.err
    assert json.loads(said.out)["tuning"]["winner"] == {"num-envs": "16", "workers": "1"}


def test_a_winner_that_learns_less_is_not_recommended_and_no_floor_is_written(hotloop: Command) -> None:
    learnt = ("--learning-metric", r"reward=reward: (\S+)", "--write-floor", "sps")
    words = ("--num-envs", "{8,64}", "--seed", "{seed}")
    said = hotloop("tune", *SPS, *learnt, "--", *PYTHON, *words)
    assert said.code == ExitCode.REGRESSION
    assert "the present settings stay: the winner learns less" in said.out
    assert "worse: -1 [-1, -1] to the present settings' -4.9" in said.out
    assert not Path("hotloop.toml").exists()


def test_seeds_that_change_nothing_are_one_seed(hotloop: Command) -> None:
    learnt = ("--learning-metric", r"reward=reward: (\S+)")
    said = hotloop("tune", *SPS, *learnt, "--", *PYTHON, "--num-envs", "{8,32}")
    assert "every run learnt exactly the same, which is one seed" in said.err
    assert "as well: +0 [+0, +0]" in said.out
    assert "1 seed;" in said.out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--", *PYTHON], "tune needs a setting with several values"),
        (["--", *PYTHON, "{8,32}{1,2}"], "has two lists of values"),
        (["--", *PYTHON, "--n", "{8,}"], "a value is empty"),
        (["--metric", "x", "--", *PYTHON, "--n", "{8,9}"], "write NAME=REGEX"),
        (["--present", "false", "--", *PYTHON, "--num-envs", "{8,9}"], "present settings cannot be run"),
        ([*SPS, "--", *PYTHON, "--n", "{1,2}", "--n", "{1,2}"], "given twice"),
        (["--write-floor", "a b", "--", *PYTHON, "--num-envs", "{8,9}"], "a name has letters"),
    ],
)
def test_bad_searches_are_usage_errors(hotloop: Command, words: list[str], line: str) -> None:
    said = hotloop("tune", *words)
    assert (said.code, said.out) == (ExitCode.USAGE, "")
    assert line in " ".join(said.err.split())
