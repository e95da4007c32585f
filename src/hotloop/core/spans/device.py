"""The time of a GPU's stream by region, from events that nothing waits for.

`span(name, device=True)` also says how long the stream was in its region, outside a run, too:

    with hotloop.span("learn", device=True):
        loss.backward()
    print(hotloop.spans.text())

A host's clock sees how long the work took to queue. Such a span puts an event on torch's stream where it
begins and where it ends, and waits for neither: they are read when the rows are asked for. Inside a
`hotloop.run` on a GPU every span is timed in that way already, and this one is like any other.
"""

import sys
import threading
from collections.abc import Callable
from threading import get_ident
from typing import Any, ParamSpec, Protocol, Self, TypeVar

from hotloop.core import spans
from hotloop.core.spans.timed import timed
from hotloop.core.time_tree import TimeTree

P = ParamSpec("P")

R = TypeVar("R")

# Pairs of events that wait to be read; from there on those that the device has passed are read.
MOST_WAITING = 4_096


class DeviceSpan:
    """See `span`: a context manager and a decorator, which may be entered again inside itself."""

    def __init__(self, name: str) -> None:
        self._region = spans.span(name)
        self._begun = threading.local()

    def __enter__(self) -> Self:
        self._region.__enter__()
        path = "/".join(spans.opened())
        self._stack().append((path, ROWS.event()))
        return self

    def __exit__(self, *_: object) -> None:
        path, begin = self._stack().pop()
        end = ROWS.event() if begin is not None else None
        self._region.__exit__(None, None, None)
        if begin is not None and end is not None:
            ROWS.add(path, begin, end)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        return timed(self, function)

    def _stack(self) -> list[tuple[str, Any]]:
        if not hasattr(self._begun, "stack"):
            self._begun.stack = []
        stack: list[tuple[str, Any]] = self._begun.stack
        return stack


class DeviceRows:
    """Calls and nanoseconds by path, of the regions whose events the device has passed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        """Begin with nothing; what waits to be read is forgotten."""
        with self._lock:
            self._totals: dict[str, tuple[int, int]] = {}
            self._waiting: list[tuple[str, Any, Any]] = []

    def event(self) -> Any:
        """A point behind the work queued so far; None where nothing is timed, or no GPU is in use."""
        torch: Any = sys.modules.get("torch")
        if torch is None or not spans.enabled() or spans.watched() or not torch.cuda.is_initialized():
            return None
        made = torch.cuda.Event(enable_timing=True)
        made.record()
        return made

    def add(self, path: str, begin: Any, end: Any) -> None:
        with self._lock:
            self._waiting.append((path, begin, end))
            if len(self._waiting) >= MOST_WAITING:
                self._read([each for each in self._waiting if each[2].query()])

    def read(self) -> dict[str, tuple[int, int]]:
        """Of every path, calls and nanoseconds; waits for the last event."""
        with self._lock:
            for _, _, end in self._waiting[-1:]:
                end.synchronize()
            self._read([each for each in self._waiting if each[2].query()])
            return dict(self._totals)

    def _read(self, passed: list[tuple[str, Any, Any]]) -> None:
        for path, begin, end in passed:
            calls, ns = self._totals.get(path, (0, 0))
            self._totals[path] = calls + 1, ns + round(begin.elapsed_time(end) * 1e6)
        done = {id(each) for each in passed}
        self._waiting = [each for each in self._waiting if id(each) not in done]


ROWS = DeviceRows()


def device_span(name: str, *, device: bool = False) -> Any:
    """The region of a name; timed on the device, too, where that is asked for."""
    return DeviceSpan(name) if device else spans.span(name)


Path = tuple[str, ...]  # Names of regions from the outermost inwards

# Of a window that wait to be read; from there on they are read as soon as the device allows.
MOST_PIECES = 65_536


class StreamEvent(Protocol):
    """A point on a stream, as `torch.cuda.Event(enable_timing=True)` is."""

    def record(self) -> None:
        """Put it behind all work queued so far."""

    def query(self) -> bool:
        """Whether the stream has passed it."""

    def elapsed_time(self, end: Any) -> float:
        """Milliseconds from this to another, once the stream has passed both."""


class Blocking:
    """Waits for the device at every boundary: exact, and slower than the run it looks at."""

    def __init__(self, wait: Callable[[], None]) -> None:
        self._wait = wait

    def mark(self, _name: str = "") -> None:
        self._wait()

    open = close = start = mark


class StreamWindow:
    """The pieces of one window: `cuts` has one event more than there are owners."""

    def __init__(self, first: StreamEvent, path: Path) -> None:
        self.cuts = [first]
        self.owners: list[Path] = []
        """Of the piece that ends at each cut but the first."""
        self.calls: dict[Path, int] = {path[: depth + 1]: 0 for depth in range(len(path))}
        self._ns: dict[Path, int] = {}

    @property
    def ready(self) -> bool:
        """Whether it can be read without waiting."""
        return self.cuts[-1].query()

    @property
    def wall_ns(self) -> int:
        """From its first event to its last, of the pieces that were added up."""
        return sum(self._ns.values())

    def tree(self, above: Path = ()) -> tuple[TimeTree, ...]:
        """Return the regions below a path, of the pieces that were added up."""
        rows = []
        for path in self.calls:
            if path[:-1] == above:
                children = self.tree(path)
                total_ns = self._ns.get(path, 0) + sum(child.total_ns for child in children)
                name = "/".join(path)
                rows.append(TimeTree(path=name, calls=self.calls[path], total_ns=total_ns, children=children))
        return tuple(rows)

    def add_up(self, pieces: int) -> list[StreamEvent]:
        """Read the first pieces, which the device has passed; their events are free for others."""
        for before, after, owner in zip(self.cuts[:pieces], self.cuts[1:], self.owners, strict=False):
            self._ns[owner] = self._ns.get(owner, 0) + round(before.elapsed_time(after) * 1e6)
        free = self.cuts[:pieces]
        del self.cuts[:pieces], self.owners[:pieces]
        return free


class DeviceStream:
    """The time of a device's stream, cut into pieces by events; each belongs to the region whose work it was.

    A GPU works behind its queue: a host clock charges its work to what waits for it. A stream is told of
    every boundary of the thread that made it, and puts an event behind the queued work there. The loop waits
    for no event: a window of them is read when the device has passed the last one.
    """

    def __init__(self, event: Callable[[], StreamEvent], wait: Callable[[], None], *, first: int = 0) -> None:
        """`first` events are made ahead: to make one takes longer than to use it again."""
        self._new, self._wait = event, wait
        self._thread = get_ident()
        self._spare = [event() for _ in range(first)]
        for each in self._spare:
            each.record()  # which makes it
        self.begin()

    def begin(self) -> None:
        """Start anew: what is measured from here on, in no region."""
        self._path: Path = ()
        self._unmarked: list[list[int]] = [[]]
        """Of each open region, its own pieces since its last mark."""
        event = self._spare.pop() if self._spare else self._new()
        event.record()
        self._window = StreamWindow(event, ())

    def open(self, name: str) -> None:
        if get_ident() == self._thread:
            self._cut()
            self._path = (*self._path, name)
            self._unmarked.append([])
            self._count(self._path)

    def close(self, name: str) -> None:
        """Close the innermost open region of this name and whatever is still open inside it."""
        if get_ident() == self._thread and name in self._path:
            self._cut()
            depth = len(self._path) - self._path[::-1].index(name) - 1
            self._path = self._path[:depth]
            del self._unmarked[depth + 1 :]

    def mark(self, name: str) -> None:
        if get_ident() == self._thread:
            self._cut()
            marked = (*self._path, name)
            for piece in self._unmarked[-1]:
                self._window.owners[piece] = marked
            self._unmarked[-1] = []
            self._count(marked)

    def start(self) -> None:
        if get_ident() == self._thread:
            self._cut()
            self._unmarked[-1] = []

    def turn(self) -> StreamWindow:
        """End the window here and begin the next; open regions go on in it."""
        self._cut()
        ended = self._window
        self._window = StreamWindow(ended.cuts[-1], self._path)
        self._unmarked = [[] for _ in self._unmarked]
        return ended

    def read(self) -> tuple[TimeTree, ...]:
        """The tree of the window, after waiting for the device to pass its last event."""
        ended = self.turn()
        self._wait()
        return self.tree_of(ended)

    def tree_of(self, window: StreamWindow) -> tuple[TimeTree, ...]:
        """The tree of a window that the device has passed; windows are read in their order."""
        self._spare += window.add_up(len(window.owners))
        return window.tree()

    def _cut(self) -> None:
        """Written for speed: it is called at every boundary."""
        window, spare = self._window, self._spare
        owners = window.owners
        pieces = len(owners)
        if pieces >= MOST_PIECES and window.cuts[MOST_PIECES // 2].query():
            self._spare += window.add_up(MOST_PIECES // 2)
            # Those that a mark might still have claimed stay their region's.
            kept = [
                [each - MOST_PIECES // 2 for each in own if each >= MOST_PIECES // 2]
                for own in self._unmarked
            ]
            self._unmarked, pieces = kept, len(owners)
        event = spare.pop() if spare else self._new()
        event.record()
        self._unmarked[-1].append(pieces)
        owners.append(self._path)
        window.cuts.append(event)

    def _count(self, path: Path) -> None:
        self._window.calls[path] = self._window.calls.get(path, 0) + 1
