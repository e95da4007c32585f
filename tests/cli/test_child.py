"""A command on its way into a process of its own."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hotloop.cli.isolated import Call


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
