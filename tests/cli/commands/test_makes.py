"""How often a command has somebody's environment made: it may take minutes, or a licence."""

import importlib
import sys
from pathlib import Path

import pytest

from hotloop.cli.main import main

ENV = """
MADE = []

class Env:
    num_actions = 2

    def reset(self, seed=None):
        self.age = 0
        return 0.0

    def step(self, action):
        self.age += 1
        return float(self.age), 0.0, self.age == 20, False, {}

def make():
    MADE.append(len(MADE))
    return Env()
"""


@pytest.mark.parametrize(
    ("command", "makes"),
    [
        (["bench", "counted_env:make", "--rounds", "6", "--iterations", "50", "--warmup", "50"], 1),
        (["profile", "counted_env:make", "--steps", "2000"], 2),
        (["compare", "counted_env:make", "counted_env:make", "--budget", "0.2", "--band", "90"], 3),
    ],
)
def test_an_env_is_made_once_for_each_that_has_to_be_there(
    command: list[str], makes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "counted_env.py").write_text(ENV)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "counted_env", raising=False)
    main(command)
    assert len(importlib.import_module("counted_env").MADE) == makes
    monkeypatch.delitem(sys.modules, "counted_env")
