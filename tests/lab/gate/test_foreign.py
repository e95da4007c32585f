"""Somebody's repository from end to end: budgets written, green, red, the commit and the function named."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.projects import Project

from hotloop.cli.main import main
from hotloop.core.errors import ExitCode

ENV = """class Env:
    num_actions = 3

    def reset(self, seed=None):
        self.at = self.steps = 0
        return self.at, {}

    def step(self, action):
        self.at = self.move(action)
        self.steps += 1
        return self.look(), float(action), self.steps >= 50, False, {}

    def move(self, action):
        at = self.at
        for turn in range(100):
            at += turn & action
        return at % 97

    def look(self):
        seen = 0
        for turn in range(100):
            seen ^= turn * self.at
        return seen


def make():
    return Env()
"""

SLOW = ENV.replace("        return at % 97", "        sum(range(2_000))\n        return at % 97")
"""A fifth more instructions, in one function, and the same answers."""

GUILTY = 13

Said = Callable[[], tuple[str, str]]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path / "project")
    made.git("checkout", "--quiet", "-b", "main")
    (made.root / ".gitignore").write_text("artifacts\n")
    made.commit(env=ENV)
    monkeypatch.chdir(made.root)
    return made


@pytest.mark.long
def test_a_slow_down_among_twenty_commits_is_found(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gate", "--init", "env.py:make"]) == ExitCode.FINE
    project.commit()
    project.git("checkout", "--quiet", "-b", "feature")
    texts = [f"{ENV if number < GUILTY else SLOW}# change {number}\n" for number in range(1, 21)]
    commits = [project.commit(env=text) for text in texts]
    only = ("--only", "env-make-instructions")
    project.git("checkout", "--quiet", commits[GUILTY - 2])
    assert main(["gate", *only]) == ExitCode.FINE
    project.git("checkout", "--quiet", "feature")
    capsys.readouterr()
    assert main(["gate", *only, "--bisect"]) == ExitCode.REGRESSION
    out = capsys.readouterr().out
    assert f"is missed since {commits[GUILTY - 1][:12]} next" in " ".join(out.split())
    table = out[out.index("Functions, by their own time") :]
    assert "Env.move (env.py)" in table.splitlines()[2]
