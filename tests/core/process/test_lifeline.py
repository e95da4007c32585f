import os
import resource
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from hotloop.core.process import lifeline
from hotloop.core.process.lifeline import MESSAGES_FROM, ProcessState, children, set_apart
from hotloop.core.settings import Target
from hotloop.envs.open import open_target
from hotloop.envs.subject import Subject


@pytest.mark.parametrize(
    ("limit", "least"),
    [(64, 32), (MESSAGES_FROM, MESSAGES_FROM // 2), (4_096, MESSAGES_FROM), (-1, MESSAGES_FROM)],
)
def test_a_line_lies_beyond_what_others_open_however_few_may_be_open(
    monkeypatch: pytest.MonkeyPatch, limit: int, least: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    copy = set_apart(0)
    os.close(copy)
    assert least <= copy < (limit if limit > 0 else 1 << 20)


@pytest.fixture
def subject() -> Subject:
    pytest.importorskip("gymnasium")
    opened = open_target(Target("gym:CartPole-v1"))
    opened.reset()
    return opened


def step_in_fork(subject: Subject, *, again: bool = False) -> int:
    """Return the exit code of a forked process that steps an env of before; 0 if it could."""
    child = os.fork()
    if not child:
        try:
            if again:  # as user code in a process that Hotloop forked
                os._exit(step_in_fork(subject))
            subject.play([0])
            os._exit(0)
        finally:
            os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_process_that_hotloop_forks_steps_an_env_of_before(subject: Subject) -> None:
    with lifeline.own_fork():
        assert step_in_fork(subject) == 0


def test_user_code_that_forks_in_there_does_not_come_back(subject: Subject) -> None:
    assert step_in_fork(subject) == 1
    with lifeline.own_fork():
        assert step_in_fork(subject, again=True) == 1


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
    others = {each.pid for each in psutil.Process().children()}  # other tests may have left a browser
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()  # it runs
        assert set(children()) - others == {child.pid}
        child.communicate(b"\n")
