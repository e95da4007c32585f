"""Spans in plain Python, for installations without the native module; agrees with native/spans/tree.h."""

import resource
import threading
from array import array
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar, final

from hotloop.core.clock import now_ns, thread_ns
from hotloop.core.spans.timed import timed

P = ParamSpec("P")

R = TypeVar("R")

# Name, calls, total_ns, cpu_ns where it is known, and the rows below, of one thread.
Raw = tuple[str, int, int, int | None, tuple[Any, ...]]

# Thread, number of the parent (-1 for the outermost) and name, of one path of a tree.
Place = tuple[int, int, str]

LAP, OFF = -1, -2  # The places of a lap, and of a stretch in which the thread was put off its core
LONG_NS = 30_000  # A thread that was put off its core was away for longer

RUSAGE = hasattr(resource, "RUSAGE_THREAD")


class Boundary(Protocol):
    """What is told of every beginning and end of a region, before the host's clock is read."""

    def open(self, name: str) -> None: ...

    def close(self, name: str) -> None: ...

    def mark(self, name: str) -> None: ...

    def start(self) -> None:
        """A chain of marks begins here."""


class Relay:
    """Tells two boundaries of everything, the first one first."""

    def __init__(self, first: Boundary, then: Boundary) -> None:
        self._first, self._then = first, then

    def open(self, name: str) -> None:
        self._first.open(name)
        self._then.open(name)

    def close(self, name: str) -> None:
        self._first.close(name)
        self._then.close(name)

    def mark(self, name: str) -> None:
        self._first.mark(name)
        self._then.mark(name)

    def start(self) -> None:
        self._first.start()
        self._then.start()


class SpanLog:
    """Every span and mark that ended, one by one, up to as many as there is room for."""

    def __init__(self) -> None:
        self.room = 0
        self.clear()

    def clear(self) -> None:
        self.events: list[tuple[SpanNode | int, int, int, int]] = []
        self.missed = self.lapped_ns = self.glanced_ns = self.put_off = 0

    def add(self, node: "SpanNode | int", begin_ns: int, end_ns: int, own: int) -> None:
        if len(self.events) < self.room:
            self.events.append((node, begin_ns, end_ns, own))
        else:
            self.missed += self.room > 0

    def lap(self, time_ns: int, given: int) -> None:
        if self.lapped_ns:
            self.add(LAP, self.lapped_ns, time_ns, given)
        self.lapped_ns = time_ns
        self.glance(time_ns)

    def glance(self, time_ns: int) -> None:
        if not self.glanced_ns:
            self.put_off = times_put_off()
        elif time_ns - self.glanced_ns > LONG_NS:
            times = times_put_off()
            if times > self.put_off:
                self.add(OFF, self.glanced_ns, time_ns, times - self.put_off)
            self.put_off = times
        self.glanced_ns = time_ns


def times_put_off() -> int:
    """Return how often this thread was put off its core; 0 if the system does not say."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw if RUSAGE else 0


LOG = SpanLog()


class SpanNode:
    """One path of a tree: a name below its parent."""

    __slots__ = ("calls", "children", "clocked", "cpu_ns", "name", "total_ns")

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0
        self.total_ns = 0
        self.cpu_ns = 0
        """Of the calls that were clocked."""
        self.clocked = 0
        """Calls that read the thread's clock where they began, and where they ended if they did."""
        self.children: dict[str, SpanNode] = {}

    def child(self, name: str) -> "SpanNode":
        found = self.children.get(name)
        if found is None:
            found = self.children[name] = SpanNode(name)
        return found


class OpenSpan:
    """One open span."""

    __slots__ = ("covered_at_mark_ns", "covered_ns", "marked_ns", "node", "start_cpu_ns", "start_ns")

    def __init__(self, node: SpanNode, start_ns: int, start_cpu_ns: int | None = None) -> None:
        self.node = node
        self.start_ns = start_ns
        self.start_cpu_ns = start_cpu_ns
        """Of the thread's clock; None if it was not read."""
        self.covered_ns = 0
        """Time that closed children and marks have taken."""
        self.marked_ns = start_ns
        """When the last mark by name was made: a span is its own first one, a thread has none."""
        self.covered_at_mark_ns = 0


class ThreadTree:
    """What one thread has timed since spans were enabled; the first frame is the thread itself."""

    def __init__(self) -> None:
        self.stack = [OpenSpan(SpanNode(""), 0)]

    def open(self, name: str, *, clocked: bool) -> None:
        node = self.stack[-1].node.child(name)
        node.calls += 1
        node.clocked += clocked
        begin_ns = now_ns()
        self.stack.append(OpenSpan(node, begin_ns, thread_ns() if clocked else None))

    def close(self, name: str, time_ns: int, cpu_ns: int | None) -> None:
        """Close the innermost open span of this name and whatever is still open inside it."""
        depth = len(self.stack) - 1
        while depth and self.stack[depth].node.name != name:
            depth -= 1
        while depth and len(self.stack) > depth:
            frame = self.stack.pop()
            frame.node.total_ns += time_ns - frame.start_ns
            if cpu_ns is not None and frame.start_cpu_ns is not None:
                frame.node.cpu_ns += cpu_ns - frame.start_cpu_ns
            else:
                frame.node.clocked -= frame.start_cpu_ns is not None
            self.stack[-1].covered_ns += time_ns - frame.start_ns
            LOG.add(frame.node, frame.start_ns, time_ns, time_ns - frame.start_ns)

    def mark(self, name: str) -> None:
        """Charge the time since the last mark by name, less what spans and other marks took meanwhile."""
        frame, time_ns = self.stack[-1], now_ns()
        node = frame.node.child(name)
        if frame.marked_ns:
            taken_ns = frame.covered_ns - frame.covered_at_mark_ns
            own_ns = max(0, time_ns - frame.marked_ns - taken_ns)
            node.calls += 1
            node.total_ns += own_ns
            frame.covered_ns += own_ns
            LOG.add(node, frame.marked_ns, time_ns, own_ns)
        frame.marked_ns = time_ns
        frame.covered_at_mark_ns = frame.covered_ns

    def read(self, time_ns: int, cpu_ns: int | None) -> tuple[Raw, ...]:
        return read_below(
            self.stack[0].node, {id(frame.node): frame for frame in self.stack[1:]}, time_ns, cpu_ns
        )


def read_below(
    node: SpanNode, still_open: dict[int, OpenSpan], time_ns: int, cpu_ns: int | None
) -> tuple[Raw, ...]:
    """The children of a node that were reached, with the time of those still open."""
    found: list[Raw] = []
    for child in node.children.values():
        below = read_below(child, still_open, time_ns, cpu_ns)
        total_ns, used_ns = child.total_ns, child.cpu_ns if child.clocked == child.calls else None
        frame = still_open.get(id(child))
        if frame is not None:
            total_ns += time_ns - frame.start_ns
            is_known = used_ns is not None and cpu_ns is not None and frame.start_cpu_ns is not None
            used_ns = child.cpu_ns + (cpu_ns or 0) - (frame.start_cpu_ns or 0) if is_known else None
        if child.calls:
            found.append((child.name, child.calls, total_ns, used_ns, below))
    return tuple(found)


class Forest:
    """The trees of all threads since spans were enabled."""

    def __init__(self) -> None:
        self.running = self.clocked = False
        self.stopped_ns = 0
        self.watcher: Boundary | None = None
        self.plant()

    def plant(self) -> None:
        """Forget all trees: each thread starts a new one with its next span.

        The lock makes each use of a tree one step to the other threads. It is new here too, because
        after a fork the old one may be held by a thread that no longer exists.
        """
        self.lock = threading.RLock()
        self.local = threading.local()
        self.trees: list[ThreadTree] = []
        self.stopper: ThreadTree | None = None
        """The tree of the thread that stopped the clock."""
        self.stopped_cpu_ns: int | None = None

    def own(self) -> ThreadTree | None:
        """The tree of the running thread; None where it has none yet."""
        found: ThreadTree | None = getattr(self.local, "tree", None)
        return found

    def tree(self) -> ThreadTree:
        """The tree of the running thread."""
        found = self.own()
        if found is None:
            found = self.local.tree = ThreadTree()
            self.trees.append(found)
        return found

    def time_ns(self) -> int:
        """Now, or when the clock was stopped."""
        return now_ns() if self.running else self.stopped_ns

    def cpu_ns(self, tree: ThreadTree | None) -> int | None:
        """What the clock of a tree's thread shows, or showed when it stopped; None to other threads."""
        if not self.running:
            return self.stopped_cpu_ns if tree is self.stopper else None
        return thread_ns() if self.clocked and tree is not None and tree is self.own() else None

    def read(self, tree: ThreadTree) -> tuple[Raw, ...]:
        used_ns = self.cpu_ns(tree)
        return tree.read(self.time_ns(), used_ns)


FOREST = Forest()

REGIONS: dict[str, "Region"] = {}


@final
class Region:
    """What `span` gives: enters and leaves a region of one name, in any thread, any number of times."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> "Region":
        if FOREST.watcher is not None:
            FOREST.watcher.open(self.name)
        if FOREST.running:
            with FOREST.lock:
                if FOREST.running:
                    FOREST.tree().open(self.name, clocked=FOREST.clocked)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if FOREST.watcher is not None:
                FOREST.watcher.close(self.name)
        finally:
            if FOREST.trees:
                with FOREST.lock:
                    tree = FOREST.tree()
                    used_ns = FOREST.cpu_ns(tree)
                    tree.close(self.name, FOREST.time_ns(), used_ns)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        return timed(self, function)


def span(name: str, /, *, device: bool = False) -> Region:
    """The region of a name; the same object each time, but for those that are timed on a device, too."""
    if device:
        from hotloop.core.spans.device import DeviceSpan

        there: Any = DeviceSpan(name)
        return there  # type: ignore[no-any-return]
    if not isinstance(name, str):
        raise TypeError("a span is named by a str")
    found = REGIONS.get(name)
    if found is None:
        if not name or "/" in name:
            raise ValueError(
                "the name of a span is not empty and has no '/', which joins the names of a path"
            )
        found = REGIONS[name] = Region(name)
    return found


def mark(name: str, /) -> None:
    """Charge the time since the last mark in the innermost open span, or since it began, to a name."""
    if FOREST.watcher is not None:
        FOREST.watcher.mark(name)
    if FOREST.running:
        region = span(name)
        with FOREST.lock:
            FOREST.tree().mark(region.name)


class Chain:
    """Where the marks of one thread stand."""

    __slots__ = ("covered_ns", "frame", "last_ns", "nodes")

    def __init__(self, frame: OpenSpan, names: Sequence[str]) -> None:
        self.frame = frame
        self.nodes = [frame.node.child(name) for name in names]
        self.covered_ns = frame.covered_ns
        self.last_ns = now_ns()

    def charge(self, slot: int) -> None:
        """Charge the time since the last mark, less what spans and other marks took meanwhile.

        A mark whose own chain began before this one's last mark took some that was earlier, hence the zero.
        """
        time_ns = now_ns()
        taken_ns = self.frame.covered_ns - self.covered_ns
        own_ns = max(0, time_ns - self.last_ns - taken_ns)
        node = self.nodes[slot]
        node.calls += 1
        node.total_ns += own_ns
        self.frame.covered_ns += own_ns
        self.covered_ns = self.frame.covered_ns
        LOG.add(node, self.last_ns, time_ns, own_ns)
        self.last_ns = time_ns


@final
class Marks:
    """Named slots; each mark charges the time since the mark before it to one of them."""

    def __init__(self, names: Sequence[str], /) -> None:
        if isinstance(names, str):
            raise TypeError("marks are named by a sequence of str")
        self.names = tuple(span(name).name for name in names)
        self._local = threading.local()

    def start(self) -> None:
        """Begin a chain in the innermost open span."""
        if FOREST.watcher is not None:
            FOREST.watcher.start()
        if FOREST.running:
            with FOREST.lock:
                self._begin()

    def mark(self, slot: int, /) -> None:
        """Charge the time since the last mark; the first mark in a span only begins a chain there."""
        if not 0 <= slot < len(self.names):
            raise IndexError(f"slot {slot} of {len(self.names)} marks")
        if FOREST.watcher is not None:
            FOREST.watcher.mark(self.names[slot])
        if FOREST.running:
            with FOREST.lock:
                chain: Chain | None = getattr(self._local, "chain", None)
                if chain is None or chain.frame is not FOREST.tree().stack[-1]:
                    self._begin()
                elif FOREST.running:
                    chain.charge(slot)

    def _begin(self) -> None:
        self._local.chain = Chain(FOREST.tree().stack[-1], self.names)


def enable(*, cpu: bool = False) -> None:
    """Begin with an empty tree; spans that are open now are left out.

    With `cpu` a span also reads the CPU clock of its thread, which costs several marks; a mark never does.
    """
    FOREST.plant()
    LOG.clear()
    FOREST.running, FOREST.clocked = True, cpu


def disable() -> None:
    """Stop the clock; the tree stays to be read."""
    with FOREST.lock:
        if FOREST.running:
            FOREST.stopper = FOREST.own()
            FOREST.stopped_cpu_ns = FOREST.cpu_ns(FOREST.stopper)
            FOREST.stopped_ns = FOREST.time_ns()
            FOREST.running = False


def enabled() -> bool:
    """Whether spans are being timed."""
    return FOREST.running


def clocked() -> bool:
    """Whether spans read the CPU clock of their thread."""
    return FOREST.clocked


def read() -> list[Raw]:
    """The outermost rows of every thread, those still open up to now."""
    with FOREST.lock:
        return [found for tree in FOREST.trees for found in FOREST.read(tree)]


def read_here() -> tuple[Raw, ...]:
    """The outermost rows of this thread, those still open up to now."""
    with FOREST.lock:
        return FOREST.read(FOREST.tree())


def opened() -> tuple[str, ...]:
    """The names of the spans this thread is in, from the outermost inwards."""
    with FOREST.lock:
        return tuple(frame.node.name for frame in FOREST.tree().stack[1:])


def watch(boundary: Boundary | None, /) -> None:
    """Tell a `Boundary` of every boundary before the clock is read; None ends it."""
    FOREST.watcher = boundary


def keep(events: int, /) -> None:
    """Make a log with room for so many spans and marks; 0 is none."""
    if events < 0:
        raise ValueError(f"a log of {events} events")
    LOG.clear()
    LOG.room = events


def lap(given: int, /) -> None:
    """Log the time since the last lap, with a number."""
    if FOREST.running:
        LOG.lap(now_ns(), given)


def glance() -> None:
    """Log how often this thread was put off its core since the last glance or lap, where that is long ago."""
    if FOREST.running:
        LOG.glance(now_ns())


def moment() -> tuple[int, int]:
    """Ticks and nanoseconds of now, which are the same here."""
    time_ns = now_ns()
    return time_ns, time_ns


def take() -> tuple[list[Place], bytes, int]:
    """What was logged: places, int64 rows of (place, begin, end, own), how many there was no room for."""
    with FOREST.lock:
        places: list[Place] = []
        numbers: dict[int, int] = {}
        for thread, tree in enumerate(FOREST.trees):
            list_below(tree.stack[0].node, thread, -1, places, numbers)
        rows = array("q")
        for node, *times in LOG.events:
            rows.extend((node if isinstance(node, int) else numbers[id(node)], *times))
        missed = LOG.missed
        LOG.clear()
    return places, rows.tobytes(), missed


def list_below(
    node: SpanNode, thread: int, parent: int, places: list[Place], numbers: dict[int, int]
) -> None:
    """The nodes of a tree, parents before their children, numbered from 0."""
    for child in node.children.values():
        numbers[id(child)] = here = len(places)
        places.append((thread, parent, child.name))
        list_below(child, thread, here, places, numbers)
