"""Which command lines run in a process of their own."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.records import BENCH

from hotloop.cli.isolated import ON_RAY, Call, foreign, run_in_process
from hotloop.core.process.supervisor import StandstillLimits


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ({"target": "grid/toy", "words": ["num_envs=4"]}, []),
        ({"target": "gym:CartPole-v1"}, ["gym:CartPole-v1"]),
        ({"target": "prospector", "policy": "my.py:Policy"}, ["my.py:Policy"]),
        ({"target": "prospector", "policy": "tape:a.npz"}, []),
        ({"target": "prospector", "words": ["train.network=my_net.py:Net"]}, ["my_net.py:Net"]),
        ({"target": "prospector", "words": ["run=a"], "resume": True}, []),
        ({"target": "run=a", "words": [], "resume": True}, ["the run that goes on"]),
        ({"target": None, "words": None, "resume": True}, ["the run that goes on"]),
        ({"target": "run=a", "words": [], "resume": False}, []),
        ({"target": None, "replay": "mismatch.npz"}, ["mismatch.npz"]),
        ({"target": "prospector", "words": ["train.collect=ray"]}, [ON_RAY]),
        ({"target": "prospector", "words": ["ranks=2"], "on": "ray"}, [ON_RAY]),
        ({"target": "prospector", "words": ["ranks=2", "ranks_on=ray"]}, [ON_RAY]),
        ({"target": "prospector", "words": ["train.ranks=2"], "on": "ray://head:1"}, []),
        ({"target": "prospector", "words": ["collect=ray://head:1"]}, []),
    ],
)
def test_somebody_elses_code_or_process_is_what_makes_it_so(asked: dict[str, Any], names: list[str]) -> None:
    assert list(foreign(asked)) == names


OFFERING = """
from pathlib import Path
from hotloop.core.process import lifeline

class Text:
    def to_json(self):
        return Path(__file__).with_name("record.json").read_text()

def offer(*, code):
    lifeline.offer(Text)
    return code
"""
"""A command that offers a record so far, and keeps none."""


@pytest.mark.parametrize(
    ("code", "saves", "files"), [(0, True, 0), (3, True, 0), (64, False, 0), (70, False, 0), (64, True, 1)]
)
def test_only_a_command_that_broke_off_leaves_its_record_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, saves: bool, files: int
) -> None:
    (tmp_path / "offering.py").write_text(OFFERING)
    (tmp_path / "record.json").write_text(BENCH.to_json())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    call = Call(command="offering:offer", asked={"code": code}, argv=("hotloop",))
    assert run_in_process(["a command"], StandstillLimits(step_s=math.inf), call, saves=saves) == code
    assert len([*tmp_path.glob(".design/*.json")]) == files


def test_what_was_asked_arrives_as_it_was() -> None:
    asked = {
        "target": "gym:CartPole-v1",
        "words": ["a=1", "name=\udcff\n"],
        "seconds": math.inf,
        "rounds": 10**30,
        "output": Path("a b") / "c",
        "tapes": [Path("one"), Path("two")],
        "json": False,
        "policy": None,
    }
    sent = Call(command="hotloop.cli.commands.bench:bench", asked=asked, argv=["hotloop", "bench"])
    assert Call.from_json(sent.to_json()) == sent


def test_a_call_runs_what_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some_command.py").write_text("def some_command(*, a, b): return a + b\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert Call(command="some_command:some_command", asked={"a": 60, "b": 4}, argv=()).run() == 64
    sys.modules.pop("some_command")


ENV = """
import sys
import gymnasium

def make():
    assert sys.argv[1:3] == ["bench", "watched.py:make"], sys.argv
    assert "typer._adapters" not in sys.modules
    return gymnasium.make("CartPole-v1")
"""


def test_the_words_are_read_once_and_somebodys_code_sees_them(
    tmp_path: Path,
    process: Callable[..., subprocess.CompletedProcess[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HOTLOOP_IN_PROCESS")
    (tmp_path / "watched.py").write_text(ENV)
    ran = process("bench", "watched.py:make", "--rounds", "1", "--iterations", "1", "--warmup", "0", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["target"]["name"] == "watched.py:make"
