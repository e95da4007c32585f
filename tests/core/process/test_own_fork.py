"""Forks that Hotloop makes itself, and those of user code."""

import os

import pytest

from hotloop.core.process import lifeline
from hotloop.core.target import Target
from hotloop.envs.open import open_target
from hotloop.envs.subject import Subject


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
