import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from hotloop.core.sampler import StackSampler, stack_of


class Deep:
    def inner(self) -> FrameType | None:
        return sys._getframe()

    def outer(self) -> FrameType | None:
        return self.inner()


@pytest.fixture
def free_timer() -> Iterator[None]:
    """The timer's signal is nobody's meanwhile."""
    before = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGALRM, before)


def busy(sampler: StackSampler, least: int) -> None:
    """Work until as many samples more were taken: from when on, the machine decides."""
    until = sampler.samples + least
    while sampler.samples < until:
        pass


def test_a_stack_has_classes_and_the_outermost_caller_first() -> None:
    names = [name for name, _, _ in stack_of(Deep().outer())]
    assert names[-2:] == ["Deep.outer", "Deep.inner"]
    assert "test_a_stack_has_classes_and_the_outermost_caller_first" in names[:-2]


@pytest.mark.usefixtures("free_timer")
def test_a_function_at_work_has_the_time_and_the_timer_is_given_back() -> None:
    with StackSampler() as sampler:
        busy(sampler, 20)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    worked, took = sum(sampler.cpu_ns.values()), sum(sampler.ns.values())
    assert 0 < worked <= took
    inside = sum(ns for stack, ns in sampler.ns.items() if any(name == "busy" for name, _, _ in stack))
    assert inside > 0.9 * sum(sampler.ns.values())
    assert all(
        file != sys.modules["hotloop.core.sampler"].__file__ for stack in sampler.ns for _, file, _ in stack
    )


@pytest.mark.usefixtures("free_timer")
def test_a_signal_that_comes_late_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    with StackSampler() as sampler:
        busy(sampler, 1)
        monkeypatch.setattr("time.sleep", lambda _: signal.raise_signal(signal.SIGALRM))
        sampler.__exit__(None, None, None)
        taken = sampler.samples
        sampler.__exit__(None, None, None)
    assert sampler.samples == taken


def test_another_thread_and_a_taken_timer_are_looked_at_from_the_side() -> None:
    found: list[StackSampler] = []

    def look() -> None:
        with StackSampler() as sampler:
            busy(sampler, 3)
        found.append(sampler)

    before_s = sys.getswitchinterval()
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    signal.signal(signal.SIGALRM, lambda *_: None)
    try:
        look()
        assert signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert not any(sampler.cpu_ns for sampler in found)
    assert [any(each[-1][0] == "busy" for each in sampler.ns) for sampler in found] == [True, True]
    assert sys.getswitchinterval() == before_s


def test_the_time_of_a_sample_is_all_since_the_one_before() -> None:
    sampler = StackSampler()
    with sampler:
        busy(sampler, 1)
    noted = sum(sampler.ns.values())
    sampler._last_ns -= 5_000_000
    sampler.note(sys._getframe(), is_own=True)
    assert sum(sampler.ns.values()) - noted >= 5_000_000


def test_a_signal_while_a_sample_is_taken_is_left_out() -> None:
    sampler = StackSampler()
    sampler._noting = True
    sampler.note(sys._getframe(), is_own=True)
    assert sampler.samples == 0


def test_a_signal_where_no_python_runs_is_the_interpreters() -> None:
    sampler = StackSampler()
    sampler.note(None, is_own=True)
    (((name, file, _),),) = sampler.ns
    assert (name, file) == ("the interpreter", "")
