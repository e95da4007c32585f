"""What is timed: a subject stepped through its actions, with the garbage collector out of the way or seen."""

import gc
import resource
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from time import process_time_ns, sleep, thread_time_ns
from typing import Any, Literal, NamedTuple, Protocol, Self

from hotloop.core.clock import now_ns
from hotloop.core.record import Pauses
from hotloop.core.spans import glance, lap, span
from hotloop.envs.subject import Subject

GC = "garbage collection"
"""The row of a tree, below whatever was running when the collector was called."""

Garbage = Literal["between", "life"]
"""When it is collected: between rounds, outside the clock, or whenever Python would, as in life."""

LITTER = 5_000
"""Objects that the collector may have to look at before it is called between two turns."""

OTHERS_SHARE = 0.01
"""Of a stretch's time, from which on other threads are looked after."""

POLL_S = 0.0005

IDLE_SHARE = 0.1
"""Of the time between two looks that other threads may run for and still be called idle."""

DRAIN_NS = 20_000_000
"""How long they are waited for."""

Actions = Any
"""The actions of one call, as the subject takes them; for a batch a contiguous int32 array."""


@contextmanager
def collecting(*, automatic: bool) -> Iterator[None]:
    """Let garbage be collected meanwhile, by itself too if `automatic`, and put each pause into a span.

    What others left for the collector is collected before, so that nobody pays for it here.
    """
    region = span(GC)

    def note(phase: str, _: Mapping[str, int]) -> None:
        if phase == "start":
            region.__enter__()
        else:
            region.__exit__(None, None, None)

    was_on = gc.isenabled()
    gc.collect(1)
    gc.callbacks.append(note)
    if automatic:
        gc.enable()
    try:
        yield
    finally:
        gc.callbacks.remove(note)
        if not was_on:
            gc.disable()


class PauseClock:
    """Times each collection of garbage for as long as it is entered."""

    def __init__(self) -> None:
        self.pauses = Pauses()
        self._begin_ns = 0

    def __enter__(self) -> Self:
        gc.callbacks.append(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        gc.callbacks.remove(self._note)

    def _note(self, phase: str, _: Mapping[str, int]) -> None:
        if phase == "start":
            self._begin_ns = now_ns()
            return
        took_ns, before = now_ns() - self._begin_ns, self.pauses
        self.pauses = Pauses(
            collections=before.collections + 1,
            total_ns=before.total_ns + took_ns,
            longest_ns=max(before.longest_ns, took_ns),
        )


def repeat(actions: Sequence[Actions], calls: int) -> Iterator[Actions]:
    """Yield the actions of a number of calls, from the beginning again where they run out."""
    again = calls > len(actions)  # to repeat them is to keep a copy of each
    return islice(cycle(actions) if again else actions, calls)


def play(subject: Subject, actions: Sequence[Actions], calls: int) -> int:
    """Step a subject a number of times; returns the wall time in ns."""
    subject.wait()
    begin = now_ns()
    subject.play(repeat(actions, calls))
    subject.wait()
    return now_ns() - begin


class Resets(Protocol):
    """Something that knows how many episodes were begun."""

    @property
    def resets(self) -> int: ...


def play_in_laps(subject: Subject, actions: Sequence[Actions], counted: Resets) -> int:
    """Step a subject and log each turn with the resets so far; returns the wall time in ns."""
    begin = now_ns()
    lap(counted.resets)
    subject.play(lapped(actions, counted))
    return now_ns() - begin


def lapped(actions: Iterable[Actions], counted: Resets) -> Iterator[Actions]:
    """Actions that are played one after another; the turn of each is logged before the next."""
    for each in actions:
        yield each
        lap(counted.resets)


class Glancing(list[Any]):
    """Actions that are played one after another, with a glance at the core between any two calls."""

    def __iter__(self) -> Iterator[Any]:
        for each in super().__iter__():
            glance()
            yield each


@contextmanager
def no_collection(garbage: Garbage = "between") -> Iterator[bool]:
    """Keep the garbage collector out of what is measured, unless it is as in life; says whether it was on.

    What is there already is left alone meanwhile, so that `collect_rest` is quick; where somebody has frozen
    objects before, they have seen to that, and theirs stay frozen.
    """
    was_on, was_frozen = gc.isenabled(), gc.get_freeze_count() > 0
    gc.collect()
    if not was_frozen:
        gc.freeze()
    if garbage == "between":
        gc.disable()
    try:
        yield was_on
    finally:
        if not was_frozen:
            gc.unfreeze()
        if was_on:
            gc.enable()


def collect_rest() -> None:
    """Collect what was left behind, outside every clock, where the collector is off and it is much."""
    if not gc.isenabled() and gc.get_count()[0] > LITTER:
        gc.collect()


class Spent(NamedTuple):
    """CPU time of this process and of this thread, and how often this thread left its core."""

    process_ns: int
    thread_ns: int
    preempted: int
    """For somebody else."""
    waited: int
    """By itself: it slept, or waited for another."""

    @property
    def others_ns(self) -> int:
        """Of all other threads."""
        return self.process_ns - self.thread_ns


def spent() -> Spent:
    left = resource.getrusage(resource.RUSAGE_THREAD)
    return Spent(process_time_ns(), thread_time_ns(), left.ru_nivcsw, left.ru_nvcsw)


class Stretch(NamedTuple):
    """What a timed stretch took."""

    ns: int
    cpu_ns: int
    """Of all threads of the process, what came late included."""
    late_ns: int
    """CPU time of other threads after the clock had stopped, for as long as anybody waited."""
    off_ns: int
    """For how long this thread was put off its core; 0 where it also waited: nobody can part the two."""


def accounted(play_it: Callable[[], int]) -> Stretch:
    """Time something, with its CPU time, and wait until what it set going is done, within bounds."""
    before = spent()
    ns = play_it()
    after = spent()
    late_ns = drained_ns(ns, after.others_ns - before.others_ns)
    cpu_ns = after.process_ns - before.process_ns + late_ns
    return Stretch(ns, cpu_ns, late_ns, put_off_ns(ns, before, after))


class Timed(NamedTuple):
    """What something took, and how long of that its thread was put off its core for somebody else."""

    ns: int
    off_ns: int


def timed(play_it: Callable[[], int]) -> Timed:
    """Time something, and what the machine did for others meanwhile."""
    before = spent()
    ns = play_it()
    return Timed(ns, put_off_ns(ns, before, spent()))


def put_off_ns(ns: int, before: Spent, after: Spent) -> int:
    """The time for which a thread that never waited was not on a core, where it was put off one."""
    if after.preempted == before.preempted or after.waited > before.waited:
        return 0
    return max(0, ns - (after.thread_ns - before.thread_ns))


def drained_ns(ns: int, others_ns: int) -> int:
    """The CPU time that other threads still use, until they are idle or for as long as anybody waits."""
    if others_ns < OTHERS_SHARE * ns and threading.active_count() == 1:
        return 0
    begin = now = spent().others_ns
    began = at = now_ns()
    while at - began < DRAIN_NS:
        sleep(POLL_S)
        before, looked = now, at
        now, at = spent().others_ns, now_ns()
        if now - before < IDLE_SHARE * (at - looked):
            break
    return max(0, now - begin)  # two clocks are read one after the other: their difference can go back
