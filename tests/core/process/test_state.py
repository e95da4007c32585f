import os
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.core.process.lifeline import ProcessState, children


def test_variables_of_our_own_are_not_blamed_on_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTLOOP_FIRST_INSTANCE", "3")
    monkeypatch.setenv("THEIRS", "3")
    before = ProcessState()
    monkeypatch.setenv("HOTLOOP_FIRST_INSTANCE", "4")
    assert not [each for each in before.settle() if "variables" in each]
    monkeypatch.setenv("THEIRS", "4")
    assert [each for each in before.settle() if "variables" in each] == ["changed the variables THEIRS"]
    assert (os.environ["HOTLOOP_FIRST_INSTANCE"], os.environ["THEIRS"]) == ("4", "3")


def test_a_thread_that_ends_while_children_are_listed_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = Path(f"/proc/{os.getpid()}/task/0/children")
    listed = [ended, Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")]
    monkeypatch.setattr(Path, "glob", lambda *_: iter(listed))
    words = [sys.executable, "-c", "print(1, flush=True); input()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()  # it runs
        assert children() == [child.pid]
        child.communicate(b"\n")
