"""The regions of a training run: spans of the host, and beside them what a GPU's stream did meanwhile.

    with span("learn"):
        loss = forward()
        mark("forward")

A GPU works behind its queue: a host clock charges its work to whoever waits for it. While a `Stream` is
watched, every beginning and end of a region is also an event on the stream, so that the time between two
events belongs to the region whose work it was. The events are read after the window, not in it.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from hotloop.core import spans
from hotloop.core.clock import now_ns
from hotloop.core.record.times import ENVIRONMENT, How, Region, Times
from hotloop.core.spans import Span, merge
from hotloop.core.spans.python import Raw
from hotloop.envs.batch import Batch

STEP = "step"
"""The whole of a native step, as a batch reports it beside its phases."""


class Event(Protocol):
    """A point on a stream, as `torch.cuda.Event(enable_timing=True)` is."""

    def record(self) -> None:
        """Put it behind all work queued so far."""

    def elapsed_time(self, end: Any) -> float:
        """Milliseconds from this to another, once the stream has passed both."""


class Boundary(Protocol):
    """What is told of every beginning and end of a region, before the host's own clock is read."""

    def open(self, name: str) -> None: ...

    def close(self) -> None: ...

    def mark(self, name: str) -> None: ...


class Blocking:
    """Waits for the device at every boundary: exact, and slower than the run it looks at."""

    def __init__(self, wait: Callable[[], None]) -> None:
        self._wait = wait

    def open(self, name: str) -> None:
        self._wait()

    def close(self) -> None:
        self._wait()

    def mark(self, name: str) -> None:
        self._wait()


class Stream:
    """The time of one stream, cut into pieces by events, each piece given to a region."""

    def __init__(self, event: Callable[[], Event], wait: Callable[[], None]) -> None:
        self._event = event
        self._wait = wait
        self.begin()

    def begin(self) -> None:
        """Start a window: what is measured from here on."""
        self._cuts = [self._event()]
        self._cuts[0].record()
        self._owners: list[tuple[str, ...]] = []
        """Of the piece that ends at each cut but the first: names from the outermost inwards."""
        self._calls: dict[tuple[str, ...], int] = {}
        self._path: tuple[str, ...] = ()
        self._unmarked: list[list[int]] = [[]]
        """Of each open region, its own pieces since its last mark."""

    def open(self, name: str) -> None:
        self._cut()
        self._path = (*self._path, name)
        self._unmarked.append([])
        self._count(self._path)

    def close(self) -> None:
        self._cut()
        self._path = self._path[:-1]
        self._unmarked.pop()

    def mark(self, name: str) -> None:
        self._cut()
        marked = (*self._path, name)
        for piece in self._unmarked[-1]:
            self._owners[piece] = marked
        self._unmarked[-1] = []
        self._count(marked)

    def read(self) -> tuple[Span, ...]:
        """The tree of the window, after waiting for the device to pass its last event."""
        self._cut()
        self._wait()
        ns: dict[tuple[str, ...], int] = {}
        for before, after, owner in zip(self._cuts, self._cuts[1:], self._owners, strict=False):
            ns[owner] = ns.get(owner, 0) + round(before.elapsed_time(after) * 1e6)
        return merge(self._rows((), ns))

    def _cut(self) -> None:
        event = self._event()
        event.record()
        self._unmarked[-1].append(len(self._owners))
        self._owners.append(self._path)
        self._cuts.append(event)

    def _count(self, path: tuple[str, ...]) -> None:
        self._calls[path] = self._calls.get(path, 0) + 1

    def _rows(self, above: tuple[str, ...], ns: dict[tuple[str, ...], int]) -> tuple[Raw, ...]:
        below = [path for path in self._calls if path[:-1] == above]
        return tuple(self._row(path, ns) for path in below)

    def _row(self, path: tuple[str, ...], ns: dict[tuple[str, ...], int]) -> Raw:
        children = self._rows(path, ns)
        total_ns = ns.get(path, 0) + sum(child[2] for child in children)
        return path[-1], self._calls[path], total_ns, children


class Watched:
    """A region that tells a boundary of its beginning and end."""

    __slots__ = ("_boundary", "_name", "_region")

    def __init__(self, name: str, boundary: Boundary) -> None:
        self._name = name
        self._boundary = boundary
        self._region = spans.span(name)

    def __enter__(self) -> None:
        self._boundary.open(self._name)
        self._region.__enter__()

    def __exit__(self, *error: object) -> None:
        self._boundary.close()
        self._region.__exit__(None, None, None)


_watched: Boundary | None = None


def watch(boundary: Boundary | None) -> None:
    """Tell a boundary of every region from now on; None tells nobody."""
    global _watched  # noqa: PLW0603 - like the spans themselves, one for the process
    _watched = boundary


def span(name: str, /) -> AbstractContextManager[object]:
    """A region by name, to be entered at once."""
    return spans.span(name) if _watched is None else Watched(name, _watched)


def mark(name: str, /) -> None:
    """Charge the time since the last mark in the innermost open region, or since it began, to a name."""
    if _watched is not None:
        _watched.mark(name)
    spans.mark(name)


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

    def end(self) -> Times:
        """The account of the window, whose end is here."""
        streamed = self._stream.read() if self._stream else None
        wall_ns = now_ns() - self._start_ns
        read = spans.tree() if streamed is None else streamed
        self.stop()
        rows = [Region(path=row.path, calls=row.calls, total_ns=row.total_ns) for row in walk(read)]
        return Times(how=self.how, wall_ns=wall_ns, regions=with_phases(rows, self._phase_rows(rows)))

    def stop(self) -> None:
        """Stop looking; a window that has begun is lost."""
        spans.disable()
        watch(None)

    def _phase_rows(self, rows: Iterable[Region]) -> list[Region]:
        """The world's phases, whose times threads share."""
        calls = next((row.calls for row in rows if row.path == ENVIRONMENT), 0)
        gained = {
            name: total - self._phases.get(name, 0) for name, total in self._batch.phase_totals().items()
        }
        threads = self._batch.spec.threads
        return [
            Region(path=f"{ENVIRONMENT}/{name}", calls=calls, total_ns=ns // threads)
            for name, ns in gained.items()
            if name != STEP and calls
        ]


def walk(tops: Iterable[Span]) -> Iterator[Span]:
    for top in tops:
        yield from top.walk()


def with_phases(rows: Iterable[Region], phases: Iterable[Region]) -> tuple[Region, ...]:
    """The rows, with the phases right below the environment's."""
    joined = list[Region]()
    for row in rows:
        joined.append(row)
        if row.path == ENVIRONMENT:
            joined += phases
    return tuple(joined)


def choose_how(asked: str, device: str) -> How:
    """What `auto` means on a device; on a CPU there is one way."""
    if not is_cuda(device):
        return "sync"
    known: dict[str, How] = {"sync": "sync", "async": "async"}
    return known.get(asked, "events")


def is_cuda(device: str) -> bool:
    return device.startswith("cuda")


def cuda_stream() -> Stream:
    import torch

    event: Any = torch.cuda.Event  # untyped in torch
    return Stream(lambda: event(enable_timing=True), torch.cuda.synchronize)


def cuda_wait() -> Blocking:
    import torch

    return Blocking(torch.cuda.synchronize)


def gpu_bytes(device: str) -> int | None:
    """Memory of the GPU that torch holds now; None where the device is none."""
    if not is_cuda(device):
        return None
    import torch

    return int(torch.cuda.memory_reserved())
