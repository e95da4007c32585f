"""Spans: named regions of Python code, timed into a tree that adds up.

    with span("learn"):             # or @span("learn") on a function
        ...

    with span("collect"):
        actions = forward()
        mark("forward")             # the time since the span began goes to "forward"
        batch.step(actions)
        mark("step")                # the time since the last mark goes to "step"

Off is the default and costs a call that does nothing. A mark costs a clock read, so marks are for hot
loops and spans for regions of 100 microseconds and more. `Marks` are marks by number, a little cheaper
still, whose chain begins where `start` says. With `enable(cpu=True)` a span also says how long its thread
was on a core, which tells a region that waits from one that works; marks never do. Each thread has a tree
of its own, whose open span a new span or mark becomes a child of; a child process starts with an empty tree.

A span covers a region of one function: it cannot stay open across a `yield` or `await`. A chain of marks
lives inside one open span: the first mark in another span only starts a new chain. Time that spans or
other marks took between two marks is theirs and not the mark's, so nothing is counted twice.
"""

import os
import resource
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Self

from hotloop.core.clock import cpu_ns, now_ns
from hotloop.core.spans.python import Boundary, Raw, Relay
from hotloop.core.time_tree import TimeTree, merge

if TYPE_CHECKING:
    from hotloop.core.spans import python as engine
else:
    try:
        import hotloop.core._spans as engine
    except ModuleNotFoundError:
        from hotloop.core.spans import python as engine


# A region by name: a context manager and a decorator, one shared object for each name.
#
# With `device=True` also timed by events on torch's stream, where torch works on a GPU: see `device_tree`.
span = engine.span

# Charge the time since the last mark in the innermost open span, or since that span began, to a name.
mark = engine.mark

Marks = engine.Marks  # Chained marks: `Marks(names)`, `start()`, `mark(slot)`

opened = engine.opened  # The names of the spans this thread is in, from the outermost inwards


def enable(*, cpu: bool = False) -> None:
    """Begin with an empty tree; spans that are open now are left out.

    With `cpu` every span reads the CPU clock of its thread where it begins and ends, which costs many times a
    mark; marks never read it.
    """
    if "hotloop.core.spans.device" in sys.modules:
        from hotloop.core.spans.device import ROWS

        ROWS.clear()
    engine.enable(cpu=cpu)


disable = engine.disable  # Stop the clock; the tree stays to be read

enabled = engine.enabled  # Whether spans are being timed

clocked = engine.clocked  # Whether spans read the CPU clock of their thread

keep = engine.keep  # Make a log with room for so many spans and marks, which enabling empties; 0 is none

lap = engine.lap  # Log one turn of a loop: the time since the last lap, with a number of the caller's

# Log how often this thread was put off its core since the last glance or lap, where that is long ago.
glance = engine.glance

# What was logged: ([(thread, parent, name)], int64 rows of (place, begin, end, own), how many were missed).
#
# A place of -1 is a lap, of -2 a stretch in which the thread was put off its core. `own` is the time of a
# span, of a mark what it was charged, of a lap its number, of a stretch off the core how often. Begin and end
# are in ticks.
take = engine.take

moment = engine.moment  # Ticks and nanoseconds of one moment; two of them make a time line of ticks

RATE_WHOLE = 1_000  # Calls a second from which on a fraction says nothing
MARKS = 2_000  # Made in a row to see what one costs

# Whether the compiled spans are in use; the Python ones cost a few times as much.
NATIVE = engine.__name__.endswith("_spans")


# What is told of boundaries: the delay of a part, and a watcher.
_told: dict[str, Boundary | None] = {"first": None, "then": None}


def watch(boundary: Boundary | None, /) -> None:
    """Tell a `Boundary` of every beginning, end and mark before the clock is read; None ends it."""
    _tell(then=boundary)


def watched() -> bool:
    """Whether a watcher is told of every boundary, as a run on a GPU is."""
    return _told["then"] is not None


def delay_by(boundary: Boundary | None, /) -> None:
    """The same for what makes a part slower, which is told before a watcher."""
    _tell(first=boundary)


def _tell(**changed: Boundary | None) -> None:
    _told.update(changed)
    told = [each for each in _told.values() if each is not None]
    engine.watch(Relay(*told) if len(told) > 1 else told[0] if told else None)


def tree() -> tuple[TimeTree, ...]:
    """The outermost spans of all threads together; those still open count up to now."""
    return merge(map(read_row, engine.read()))


def tree_here() -> tuple[TimeTree, ...]:
    """The outermost spans of this thread; those still open count up to now."""
    return tuple(map(read_row, engine.read_here()))


def device_tree() -> tuple[TimeTree, ...]:
    """The regions that asked for it, by the time a GPU's stream was in them; waits for the last of them."""
    if "hotloop.core.spans.device" not in sys.modules:
        return ()
    from hotloop.core.spans.device import ROWS

    return tuple(TimeTree(path=path, calls=calls, total_ns=ns) for path, (calls, ns) in ROWS.read().items())


def text(rows: Iterable[TimeTree] | None = None) -> str:
    """The tree as lines of text: total, share of the row above, calls, one call, calls a second, CPU.

    The second is one of its outermost span; `self` is what no child has; CPU is the share of a row's own time
    that its thread was on a core, where spans were asked for it. Regions that were timed on a device, too,
    follow with their time there.
    """
    tops = tree() if rows is None else tuple(rows)
    lines = [line for row in tops for line in _lines(row, row, row.total_ns, "")]
    there = device_tree() if rows is None else ()
    if there:
        lines.append("on the GPU's stream, by events; above is the host's clock")
    lines += [line for row in there for line in _lines(row, row, row.total_ns, "  ")]
    return "".join(f"{line}\n" for line in lines)


def _lines(row: TimeTree, top: TimeTree, above_ns: int, indent: str) -> Iterator[str]:
    each_us = row.total_ns / row.calls / 1e3 if row.calls else 0.0
    rate = row.calls * 1e9 / top.total_ns if top.total_ns else 0.0
    often = f"{row.calls:>8,} x {each_us:>9,.1f} µs {rate:>7,.{1 if rate < RATE_WHOLE else 0}f}/s"
    often += on_core(row.cpu_ns, row.total_ns)
    yield _line(indent + row.name, row.total_ns, above_ns, often)
    for child in row.children:
        yield from _lines(child, top, row.total_ns, indent + "  ")
    if row.children:
        worked = on_core(row.self_cpu_ns, row.self_ns)
        yield _line(f"{indent}  self", row.self_ns, row.total_ns, f"{'':>33}{worked}" if worked else "")


def _line(name: str, total_ns: int, above_ns: int, often: str) -> str:
    share = total_ns / above_ns if above_ns else 0.0
    return f"{name:<25} {total_ns / 1e6:>10,.3f} ms {share:>6.1%} {often}".rstrip()


def on_core(cpu_ns: int | None, total_ns: int) -> str:
    """The share of a time that was worked, as a column; empty where it is not known."""
    return "" if cpu_ns is None else f" {cpu_ns / max(total_ns, 1):>5.0%} CPU"


def read_row(row: Raw, above: str = "") -> TimeTree:
    """Return one row of a thread's tree with those below it."""
    name, calls, total_ns, cpu_ns, below = row
    path = above + name
    children = tuple(read_row(child, f"{path}/") for child in below)
    return TimeTree(path=path, calls=calls, total_ns=total_ns, cpu_ns=cpu_ns, children=children)


def mark_cost_ns() -> float:
    """What a mark takes here and now; empties the tree."""
    enable()
    try:
        with span("cost"):
            begin = now_ns()
            for _ in range(MARKS):
                mark("mark")
            return (now_ns() - begin) / MARKS
    finally:
        disable()


def start_anew() -> None:
    """Empty the tree and leave it on or off: what a child process inherits happened in its parent."""
    _tell(first=None, then=None)
    was_on = enabled()
    enable(cpu=clocked())
    if not was_on:
        disable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=start_anew)


# After the name of a row whose time is a GPU's: it stands beside the host's, not in it.
ON_GPU = "(on the GPU)"

# Names a folder, as an environment variable: a program that uses spans writes its tree there.
FILE = "HOTLOOP_SPANS"


def write_at_exit(folder: str) -> None:
    """Enable spans now, and have this process write its tree as it ends; a child writes its own."""
    import atexit
    import json
    from pathlib import Path

    def write() -> None:
        rows = [(row.path, row.calls, row.total_ns, row.cpu_ns) for top in tree() for row in top.walk()]
        rows += [(f"{row.path} {ON_GPU}", row.calls, row.total_ns, None) for row in device_tree()]
        Path(folder, f"{os.getpid()}.spans.json").write_text(json.dumps(rows), encoding="utf-8")

    atexit.register(write)
    enable(cpu=True)


MIB = 1 << 20


class Monitor:
    """What one block of a program took: duration, CPU time and memory of this process, once it has ended."""

    __slots__ = ("_region", "cpu_ns", "name", "rss_bytes", "rss_change_bytes", "wall_ns")

    def __init__(self, name: str) -> None:
        self._region = span(name)
        self.name = name
        self.wall_ns = self.cpu_ns = self.rss_bytes = self.rss_change_bytes = 0

    def __enter__(self) -> Self:
        self._region.__enter__()
        self.rss_change_bytes = -resident_bytes()
        self.cpu_ns = -cpu_ns()
        self.wall_ns = -now_ns()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall_ns += now_ns()
        self.cpu_ns += cpu_ns()
        self.rss_bytes = resident_bytes()
        self.rss_change_bytes += self.rss_bytes
        self._region.__exit__(None, None, None)
        sys.stderr.write(f"{self}\n")

    def __str__(self) -> str:
        share = self.cpu_ns / self.wall_ns if self.wall_ns else 0.0
        return (
            f"{self.name}: {self.wall_ns / 1e9:.3f} s, CPU {self.cpu_ns / 1e9:.3f} s ({share:.0%} of a core)"
            f", memory {self.rss_bytes / MIB:.1f} MiB ({self.rss_change_bytes / MIB:+.1f})"
        )


def monitor(name: str, /) -> Monitor:
    """Say on stderr what the block of a `with` statement took.

    It prints whether or not spans are enabled; where they are, the block is a span of this name too. What
    threads of this process do meanwhile is in the CPU time and in the memory; child processes are not.
    """
    return Monitor(name)


def peak_rss_bytes() -> int:
    """The most memory this process has had in RAM."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def resident_bytes() -> int:
    """The memory of this process that is in RAM now."""
    import psutil

    resident: int = psutil.Process().memory_info().rss
    return resident


if os.environ.get(FILE):
    write_at_exit(os.environ[FILE])
