import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hotloop.core import turn_clock
from hotloop.core.turn_clock import FAMILY, Spent, TurnClock, timed

linux_only = pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="needs /proc")  # noqa: PTH110


def play(seconds: float = 0.02) -> int:
    """Use the CPU for a while; return the wall time in ns."""
    begin = time.perf_counter_ns()
    while time.perf_counter_ns() - begin < seconds * 1e9:
        pass
    return time.perf_counter_ns() - begin


@contextmanager
def child(program: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    FAMILY.claim([], 0)  # have the list of children read again
    try:
        yield process
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


SPINS = "print(flush=True)\nwhile True: pass"
SLEEPS = "import time\nprint(flush=True)\ntime.sleep(60)"


def fake_clocks(monkeypatch: pytest.MonkeyPatch, *reads: Spent) -> None:
    left = iter(reads)
    monkeypatch.setattr(turn_clock, "spent", lambda _=None: next(left))


def read(process: int = 0, thread: int = 0, children: int = 0, theirs: int = 0, queued: int = 0) -> Spent:
    return Spent(process, thread, children, children + theirs, queued)


def test_clocks_that_disagree_never_take_time_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """One clock is read after the other; between them time may pass."""
    fake_clocks(monkeypatch, read(process=900), read(process=1_700, thread=900))
    took = timed(lambda: 1_000)
    assert (took.cpu_ns, took.others_ns) == (800, 0)


def test_a_turn_that_waited_for_a_core_is_disturbed_if_nothing_of_its_own_ran(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_clocks(monkeypatch, read(), read(process=700_000, thread=700_000, queued=300_000))
    assert timed(lambda: 1_000_000).disturbed


def test_microseconds_between_two_clocks_are_noise_and_no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first turn may last as long as one step: 2 us are a tenth of it, and nothing else ran."""
    fake_clocks(monkeypatch, read(), read(process=22_000, thread=20_000, queued=2_000))
    took = timed(lambda: 20_000)
    assert not turn_clock.is_work(took.others_ns, took.ns)
    assert not took.disturbed


@pytest.mark.parametrize("what", ["process", "children", "theirs"])
def test_a_turn_whose_own_or_rival_processes_took_the_core_is_not_disturbed(
    monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    after = {"process": 700_000, what: 1_000_000}
    fake_clocks(monkeypatch, read(), read(thread=700_000, queued=300_000, **after))
    assert not timed(lambda: 1_000_000).disturbed


@linux_only
def test_the_cpu_time_of_child_processes_counts() -> None:
    with child(SPINS):
        took = timed(lambda: play(0.2))
    assert took.children_ns > 0.02 * took.ns
    assert took.cpu_ns >= took.children_ns


@linux_only
def test_the_children_of_another_side_are_not_counted_for_this_one() -> None:
    claim = list[int]()
    with FAMILY.noting(claim), child(SPINS) as process:
        FAMILY.claim([process.pid], owner=1)
        assert timed(lambda: play(0.1), owner=2).children_ns == 0
        assert timed(lambda: play(0.1), owner=1).children_ns > 0
    assert claim == []


@linux_only
def test_children_that_are_started_meanwhile_are_noted() -> None:
    claim = list[int]()
    with FAMILY.noting(claim):
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert claim == [process.pid]
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


@linux_only
def test_workers_that_sleep_after_a_turn_neither_poll_nor_work_late() -> None:
    clock = TurnClock()
    with child(SLEEPS):
        took = clock.time(play)
    assert not took.polls
    assert took.late_ns < 0.2 * took.ns


def rates(monkeypatch: pytest.MonkeyPatch, in_turn: float, in_pause: float, own: float = 0.0) -> TurnClock:
    """Return a clock whose side uses so many cores in its turn and then, for ever, so many in a pause."""
    clock, now = TurnClock(), 0
    thread = threading.Event()
    used = {"others": 0.0, "own": 0.0}

    def advance(ns: float, rate: float, own: float = 0.0) -> None:
        nonlocal now
        now += round(ns)
        used["others"] += ns * rate
        used["own"] += ns * own

    def spent(_: int | None = None) -> Spent:
        others, mine = round(used["others"]), round(used["own"])
        return Spent(mine, mine, others, others, 0)

    def turn() -> int:
        advance(1e6, in_turn, own)
        return 1_000_000

    monkeypatch.setattr(turn_clock, "spent", spent)
    monkeypatch.setattr(turn_clock, "perf_counter_ns", lambda: now)
    monkeypatch.setattr(turn_clock, "sleep", lambda s: advance(s * 1e9, in_pause))
    clock.time(turn)
    assert not thread.is_set()
    return clock


@pytest.mark.parametrize(
    ("in_turn", "in_pause", "own", "polls"),
    [
        (2.0, 2.0, 1.0, True),
        (1.33, 2.0, 0.67, True),  # three that spin on two cores, and two in the pause
        (2.0, 1.0, 0.0, False),
        (0.5, 2.0, 0.5, False),
    ],
)
def test_others_that_never_rest_poll_if_they_use_as_much_in_a_pause(
    monkeypatch: pytest.MonkeyPatch, in_turn: float, in_pause: float, own: float, polls: bool
) -> None:
    assert rates(monkeypatch, in_turn, in_pause, own).polls is polls


def test_work_that_ends_in_the_pause_is_late_and_no_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = TurnClock()
    worked, done = read(children=500_000), read(children=900_000)
    left = iter([read(), read(process=1_000_000, children=500_000), worked, *[done] * 9])
    monkeypatch.setattr(turn_clock, "spent", lambda _=None: next(left))
    took = clock.time(lambda: 1_000_000)
    assert (took.late_ns, took.polls) == (400_000, False)


def test_one_turn_in_eight_of_a_poller_begins_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, pauses = TurnClock(), list[float]()
    monkeypatch.setattr(turn_clock, "sleep", pauses.append)
    assert not any(clock.rest() for _ in range(16))
    clock.polls = True
    assert sum(clock.rest() for _ in range(16)) == len(pauses) == 2
