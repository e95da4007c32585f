"""What is timed: a subject stepped through its actions, with the garbage collector out of the way or seen."""

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Protocol, Self

from hotloop.core.clock import now_ns
from hotloop.core.record.profile import Pauses
from hotloop.core.spans import glance, lap, span
from hotloop.core.turn_clock import repeat
from hotloop.envs.subject import Subject

GC = "garbage collection"  # The row of a tree, below whatever was running when the collector was called

# When it is collected: between rounds, outside the clock, or whenever Python would, as in life.
Garbage = Literal["between", "life"]

Actions = Any  # The actions of one call, as the subject takes them; for a batch a contiguous int32 array


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
