"""What several of the hostile tests share."""

import tempfile
from pathlib import Path

import pytest
from support.apart import Command, Said

from hotloop.cli.main import main


@pytest.fixture
def apart(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command line in an empty folder, its targets in processes of their own."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("HOTLOOP_IN_PROCESS")

    def command(*words: str) -> Said:
        code = main(words)
        out, err = capfd.readouterr()
        return Said(code, out, err)

    return command
