"""Work on a GPU that is recorded once and then played back: the host does not launch it piece by piece.

    think = Recorded(lambda: out.copy_(network(seen)), device)
    think()     # done as it stands, which also makes what is made on first use
    think()     # recorded as a CUDA graph, and played
    think()     # played

What is recorded has fixed shapes, reads and writes tensors that stay where they are, and never waits for the
device. On a CPU there is nothing to record, and the work is done every time.
"""

import gc
from collections.abc import Callable
from functools import cache
from typing import Any

import torch


class Recorded:
    """One piece of work; the first call does it, the second records it, all from there on play it."""

    def __init__(self, work: Callable[[], None], device: torch.device) -> None:
        self._work = work
        self._records = device.type == "cuda"
        self._warm = False
        self._graph: Any = None

    def __call__(self) -> None:
        if self._graph is not None:
            self._graph.replay()
        elif self._records and self._warm:
            self._graph = record(self._work)
            self._graph.replay()
        else:
            self._work()
            self._warm = True


def record(work: Callable[[], None]) -> Any:
    """The graph of a piece of work, which is not done by this."""
    graph, pool = torch.cuda.CUDAGraph(), first_graph().pool()
    torch.cuda.synchronize()
    was_on = gc.isenabled()
    gc.disable()  # it could free memory of the device in the middle of a recording
    try:
        graph.capture_begin(pool=pool)
        try:
            work()
        finally:
            graph.capture_end()
    finally:
        if was_on:
            gc.enable()
    return graph


@cache
def first_graph() -> Any:
    """A graph that stays: the others share its memory, as only one of them runs at a time."""
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    graph.capture_begin()
    torch.zeros(1, device="cuda")
    graph.capture_end()
    return graph


@cache
def own_stream() -> Any:
    """The stream that training works on: the default one cannot be recorded."""
    return torch.cuda.Stream()  # type: ignore[no-untyped-call]


def use_own_stream() -> int:
    """Let torch work on it from now on, after all it was asked so far; returns its address."""
    stream = own_stream()
    if torch.cuda.current_stream() != stream:
        torch.cuda.synchronize()
        torch.cuda.set_stream(stream)
    return int(stream.cuda_stream)
