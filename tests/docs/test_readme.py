"""README's six commands answer on an environment of the reader's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.pages import ROOT, blocks

from hotloop.cli.main import main
from hotloop.core.errors import ExitCode

COMMANDS = [
    command.partition("#")[0].split()[1:]
    for block in blocks(ROOT / "README.md")
    for command in block.commands
    if "my_env.py" in command or command.startswith("hotloop diagnose")
]

SHORTER = {
    "bench": ["--quick"],
    "profile": ["--steps", "500"],
    "validate": ["300"],
    "compare": ["--budget", "2"],
}

ENV = """
class Walk:
    num_actions = 2
    def __init__(self, steps):
        self.steps = steps
    def reset(self, seed=None):
        self.place = 0
        return self.place, {}
    def step(self, action):
        self.place += 1 if action else -1
        for _ in range(self.steps): pass
        return self.place, float(self.place), abs(self.place) > 20, False, {}
def make(): return Walk(4_000)
def fast(): return Walk(40)
"""


@pytest.mark.slow
def test_the_six_commands_lead_from_a_slow_env_to_a_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [each[0] for each in COMMANDS] == ["bench", "profile", "diagnose", "validate", "compare", "gate"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "my_env.py").write_text(ENV)
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q", "-b", "main"), ("add", "."), (*who, "commit", "-qm", "one")):
        subprocess.run(["git", *words], check=True)
    for words in COMMANDS:
        code = main([*words, *SHORTER.get(words[0], [])])
        screen = capsys.readouterr().out
        busy = {ExitCode.CANNOT_TELL} if words[0] == "compare" else set()  # tests run beside this one
        assert code in {ExitCode.FINE, ExitCode.UNSTABLE, *busy}, (words, screen)
        if words[0] == "diagnose":
            assert "step" in screen
        if words[0] == "compare":
            assert "times as fast as A" in screen
    assert (tmp_path / "hotloop.toml").exists()
