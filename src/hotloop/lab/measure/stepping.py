"""What is timed: a subject stepped through its actions, with the garbage collector out of the way or seen."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from typing import Any, Protocol

from hotloop.core.clock import now_ns
from hotloop.core.spans import lap, span
from hotloop.envs.subject import Subject

GC = "garbage collection"
"""The row of a tree, below whatever was running when the collector was called."""

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


def repeat(actions: Sequence[Actions], calls: int) -> Iterator[Actions]:
    """Yield the actions of a number of calls, from the beginning again where they run out."""
    return islice(cycle(actions), calls)


def play(subject: Subject, actions: Sequence[Actions], calls: int) -> int:
    """Step a subject a number of times; returns the wall time in ns."""
    step = subject.step
    subject.wait()
    begin = now_ns()
    for chosen in repeat(actions, calls):
        step(chosen)
    subject.wait()
    return now_ns() - begin


class Resets(Protocol):
    """Something that knows how many episodes were begun."""

    @property
    def resets(self) -> int: ...


def play_in_laps(subject: Subject, actions: Sequence[Actions], counted: Resets) -> int:
    """Step a subject and log each turn with the resets so far; returns the wall time in ns."""
    step = subject.step
    begin = now_ns()
    lap(counted.resets)
    for chosen in repeat(actions, len(actions)):  # as the clean side does
        step(chosen)
        lap(counted.resets)
    return now_ns() - begin


@contextmanager
def no_collection() -> Iterator[bool]:
    """Keep the garbage collector out of what is measured; says whether it was on."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield was_on
    finally:
        if was_on:
            gc.enable()
