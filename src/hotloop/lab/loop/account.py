"""Where the time of a loop goes, window by window: by the host's clock, or by events on a GPU's stream."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from hotloop.core import spans
from hotloop.core.clock import now_ns, thread_ns
from hotloop.core.errors import InputError
from hotloop.core.spans.device import Blocking, DeviceStream, StreamWindow
from hotloop.core.spans.python import Boundary
from hotloop.core.time_tree import How, TimeTree

Timing = Literal["auto", "events", "sync", "host"]

TIMINGS: tuple[Timing, ...] = ("auto", "events", "sync", "host")


class PendingWindow(Protocol):
    """A window that has ended, whose times may not be known yet."""

    @property
    def ready(self) -> bool:
        """Whether it can be read without waiting for a device."""

    def read(self) -> TimeTree: ...


class Account(Protocol):
    """Times windows that follow one another without a gap."""

    @property
    def how(self) -> How: ...

    @property
    def boundary(self) -> Boundary | None:
        """Who has to be told of every region."""

    def begin(self) -> None:
        """Begin the first window here, in no span."""

    def turn(self) -> PendingWindow:
        """End the window here and begin the next; spans that are open go on in it."""

    def wait(self) -> None:
        """Return when every window that has ended can be read."""


@dataclass(frozen=True, slots=True)
class FinishedWindow:
    """The times of a window that are known already."""

    times: TimeTree
    ready: bool = True

    def read(self) -> TimeTree:
        return self.times


class HostAccount:
    """The host's clock: a window is what this thread's tree gained in it."""

    def __init__(self, how: How = "sync", boundary: Boundary | None = None) -> None:
        self.how: How = how
        self.boundary = boundary
        self.begin()

    def begin(self) -> None:
        self._now = TimeTree(
            total_ns=now_ns(),
            cpu_ns=thread_ns() if spans.clocked() else None,
            children=spans.tree_here(),
            how=self.how,
        )

    def turn(self) -> PendingWindow:
        before = self._now
        self.begin()
        return FinishedWindow(self._now - before)

    def wait(self) -> None:
        pass


class StreamAccount:
    """Events on a stream: a window is known when the device has passed its last event."""

    how: How = "events"

    def __init__(self, stream: DeviceStream, wait: Callable[[], None]) -> None:
        self.boundary: DeviceStream = stream
        self.wait = wait

    def begin(self) -> None:
        self.boundary.begin()

    def turn(self) -> PendingWindow:
        return OnStream(self.boundary, self.boundary.turn())


@dataclass(frozen=True, slots=True)
class OnStream:
    """A window of events."""

    stream: DeviceStream
    window: StreamWindow

    @property
    def ready(self) -> bool:
        return self.window.ready

    def read(self) -> TimeTree:
        children = self.stream.tree_of(self.window)
        return TimeTree(total_ns=self.window.wall_ns, children=children, how="events")


def elsewhere() -> tuple[TimeTree, ...]:
    """Return the spans of all other threads."""
    both = TimeTree(total_ns=0, children=spans.tree()), TimeTree(total_ns=0, children=spans.tree_here())
    return (both[0] - both[1]).children


def cuda_runs() -> bool:
    """Whether torch works on a GPU in this process; it is never imported to find out."""
    if "torch" not in sys.modules:
        return False
    from hotloop.train.timing import cuda_initialised

    return cuda_initialised()


def jax_runs() -> bool:
    """Whether JAX computes in this process, on whatever device: it does so behind its caller."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    is_used = getattr(bridge, "backends_are_initialized", None)
    return bool(is_used and is_used())


def open_account(timing: Timing, wait: Callable[[], None] | None) -> Account:
    """The account that was asked for; `auto` takes events where torch works on a GPU already."""
    if timing not in TIMINGS:
        raise InputError(f"timing={timing!r} does not fit: expected one of {', '.join(TIMINGS)}")
    if wait is not None:
        return HostAccount("sync", Blocking(wait))
    gpu = cuda_runs()
    if timing == "events" and not gpu:
        raise InputError("timing='events' needs a GPU that torch uses: move the model there before the run")
    if gpu and timing in ("auto", "events"):
        from hotloop.train.timing import cuda_stream, cuda_waiter

        return StreamAccount(cuda_stream(), cuda_waiter())
    if gpu and timing == "sync":
        from hotloop.train.timing import cuda_wait

        return HostAccount("sync", cuda_wait())
    return HostAccount("async" if gpu else "sync")
