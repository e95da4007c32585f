"""What several of the hostile tests share."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from support.apart import MARK, Command, Said, check_no_orphan

from hotloop.cli.main import main


@pytest.fixture
def apart(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Command]:
    """Run a command line in an empty folder, its targets in processes of their own, of which none is left."""
    mark = uuid4().hex
    monkeypatch.setenv(MARK, mark)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("HOTLOOP_IN_PROCESS")

    def command(*words: str) -> Said:
        code = main(words)
        out, err = capfd.readouterr()
        return Said(code, out, err)

    yield command
    check_no_orphan(mark)
