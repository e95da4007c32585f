"""Garbage collection as a program has it in life, each pause in a span of its own."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hotloop.core.spans import span

GC = "garbage collection"
"""The row of a tree, below whatever was running when the collector was called."""


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
