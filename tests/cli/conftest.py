"""What several tests of the CLI share."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hotloop.cli.main import main


@dataclass(frozen=True)
class Said:
    """What one command line came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Said]


@pytest.fixture
def hotloop(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command line in this process, in an empty folder."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def command(*words: str) -> Said:
        code = main(words)
        out, err = capsys.readouterr()
        return Said(code, out, err)

    return command


@pytest.fixture
def process(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command line in a process of its own, in an empty folder."""

    def start(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        code = "import sys; from hotloop.cli.main import main; sys.exit(main())"
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
        environment = os.environ | {"TMPDIR": str(tmp_path)}
        command = [sys.executable, "-c", code, *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, text=True, check=False, **streams)

    return start
