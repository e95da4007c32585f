"""The regions of a training run: spans of the host, and beside them what a GPU's stream did meanwhile.

    with span("learn"):
        loss = forward()
        mark("forward")

A GPU works behind its queue: a host clock charges its work to what waits for it. While a `DeviceStream` is
watched, every beginning and end of a region is also an event on the stream, so that the time between two
events belongs to the region whose work it was. The events are read after the window, not in it.
"""

import ctypes
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from hotloop.core import spans
from hotloop.core.clock import now_ns
from hotloop.core.spans.device import Blocking, DeviceStream, StreamEvent
from hotloop.core.time_tree import ENVIRONMENT, How, TimeTree
from hotloop.envs.batch import Batch

FIRST_EVENTS = 256  # Made before a run begins

# The function of torch's that says a device's present stream as a number.
PRESENT = "_cuda_getCurrentRawStream"

RUNTIME = "libcudart"  # What the file of CUDA's runtime is called
STEP = "step"  # The whole of a native step, as a batch reports it beside its phases


span = spans.span  # A region by name; what watches is told of it, too

# Charge the time since the last mark in the innermost open region, or since it began, to a name.
mark = spans.mark

watch = spans.watch  # Tell a boundary of every region from now on; None tells nothing


class Clock:
    """Times windows: `begin`, then the regions of the window, then `end`."""

    def __init__(self, batch: Batch, *, how: How = "sync", device: str = "cpu") -> None:
        self._batch = batch
        self.how: How = how
        self._stream = cuda_stream() if how == "events" else None
        waits = how == "sync" and is_cuda(device)
        self._boundary = cuda_wait() if waits else self._stream

    def begin(self, at_ns: int | None = None) -> None:
        """Start a window, now or at the end of the one before."""
        self._phases = self._batch.phase_totals()
        if self._stream is not None:
            self._stream.begin()
        watch(self._boundary)
        spans.enable()
        self._start_ns = now_ns() if at_ns is None else at_ns

    def end(self) -> TimeTree:
        """The account of the window, whose end is here."""
        streamed = self._stream.read() if self._stream else None
        wall_ns = now_ns() - self._start_ns
        read = spans.tree() if streamed is None else streamed
        self.stop()
        tree = TimeTree(total_ns=wall_ns, children=read, how=self.how)
        calls = next((row.calls for row in tree.walk() if row.path == ENVIRONMENT), 0)
        if not calls:
            return tree
        phases = tuple(
            TimeTree(
                path=f"{ENVIRONMENT}/{name}",
                calls=calls,
                total_ns=(total - self._phases.get(name, 0)) // self._batch.spec.threads,  # which share it
            )
            for name, total in self._batch.phase_totals().items()
            if name != STEP
        )
        return tree.with_parts(ENVIRONMENT, phases)

    def stop(self) -> None:
        """Stop looking; a window that has begun is lost."""
        spans.disable()
        watch(None)


def choose_how(asked: str, device: str) -> How:
    """What `auto` means on a device; on a CPU there is one way."""
    if not is_cuda(device):
        return "sync"
    known: dict[str, How] = {"sync": "sync", "async": "async"}
    return known.get(asked, "events")


def is_cuda(device: str) -> bool:
    return device.startswith("cuda")


def cuda_stream() -> DeviceStream:
    return DeviceStream(event_maker(), cuda_waiter(), first=FIRST_EVENTS)


class QuickEvent:
    """An event of torch's that is recorded by CUDA's own function: torch's takes some times as long."""

    __slots__ = ("_find", "_handle", "_put", "event")

    def __init__(self, event: Any, put: Callable[[int, int], int], find: Callable[[], int]) -> None:
        """`put` records a handle on a stream, and `find` finds the present one."""
        self.event, self._put, self._find, self._handle = event, put, find, 0

    def record(self) -> None:
        if not self._handle:
            self.event.record()
            self._handle = self.event.cuda_event  # which is made by the first record
        elif self._put(self._handle, self._find()):
            raise RuntimeError("CUDA refused an event: was the device reset?")

    def query(self) -> bool:
        return bool(self.event.query())

    def elapsed_time(self, end: "QuickEvent") -> float:
        return float(self.event.elapsed_time(end.event))


def event_maker() -> Callable[[], StreamEvent]:
    """Makes events on torch's present stream."""
    import torch

    event: Any = torch.cuda.Event  # untyped in torch
    runtime, present = cuda_runtime(), vars(torch._C).get(PRESENT)  # noqa: SLF001 - nothing else is as quick
    if runtime is None or present is None:
        return lambda: event(enable_timing=True)
    put = runtime.cudaEventRecord
    put.argtypes, put.restype = (ctypes.c_void_p, ctypes.c_void_p), ctypes.c_int
    find = partial(present, torch.cuda.current_device())

    def make() -> QuickEvent:
        return QuickEvent(event(enable_timing=True), put, find)

    return make if is_sound(make(), cuda_waiter()) else lambda: event(enable_timing=True)


def is_sound(event: QuickEvent, wait: Callable[[], None]) -> bool:
    """Whether an event that is recorded so is one for torch, too; waits for the device."""
    try:
        for _ in range(2):
            event.record()
        wait()
        return event.query() and event.elapsed_time(event) == 0
    except RuntimeError:
        return False


def cuda_runtime() -> Any:
    """The CUDA runtime that torch has loaded; None where there is none, or it shows no functions."""
    with suppress(OSError), Path("/proc/self/maps").open(encoding="utf-8") as maps:
        paths = {line.split(maxsplit=5)[-1].strip() for line in maps if RUNTIME in line}
        for path in paths:
            with suppress(OSError, AttributeError):
                library = ctypes.PyDLL(path)  # the lock of Python is kept: it returns at once
                library.cudaEventRecord  # noqa: B018 - whether it is there
                return library
    return None


def cuda_wait() -> Blocking:
    return Blocking(cuda_waiter())


def cuda_waiter() -> Callable[[], None]:
    """A function that returns when all work on the present GPU is done."""
    import torch

    return torch.cuda.synchronize


def gpu_bytes(device: str) -> int | None:
    """Memory of the GPU that torch holds now; None where the device is none."""
    if not is_cuda(device):
        return None
    import torch

    return int(torch.cuda.memory_reserved())
