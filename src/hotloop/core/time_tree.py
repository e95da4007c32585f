"""TimeTree: where time went, as rows below one another that add up.

`how` says what the times of a whole are:

- `sync`    the host's clock around work that is done when it is read: always so on a CPU; with a GPU after
            waiting for it at every boundary, which is exact, and slower than the run;
- `events`  events on the GPU's stream, read after the window;
- `async`   the host's clock around work that a GPU may still have to do: not to be trusted.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

How = Literal["sync", "events", "async"]

ENVIRONMENT = "rollout/environment"  # The row whose children are the world's phases
WHOLE = "window"  # What the whole is called, whose path is empty

REST = "unaccounted"

# What the environment's step has beyond its phases: the call into it, and its threads' waiting.
CALL = "call and waiting"

LARGEST = "◀ largest"

HOW: dict[How, str] = {
    "sync": "host clock, read when the work is done",
    "events": "events on the GPU's stream, read after the window",
    "async": "host clock around work that the GPU may still have to do: GPU work is charged to who waits",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeTree:
    """One row and the rows it consists of: total_ns is self_ns and the totals of the children."""

    path: str = ""  # Names from the outermost inwards, joined by `/`; empty for the whole, such as a window
    calls: int = 0  # 0 for the whole, for what began before it, and for a rest
    total_ns: int
    # Time that its thread was on a core: little if it waits, None if not measured, as of marks.
    cpu_ns: int | None = None
    children: tuple["TimeTree", ...] = ()
    how: How = "sync"  # How the whole was timed

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def above(self) -> str:
        """The path of the row it is part of; empty if that is the whole."""
        return self.path.rpartition("/")[0]

    @property
    def depth(self) -> int:
        return self.path.count("/") + 1 if self.path else 0

    @property
    def self_ns(self) -> int:
        """Time that no child has."""
        return self.total_ns - sum(child.total_ns for child in self.children)

    @property
    def self_cpu_ns(self) -> int | None:
        """CPU time that no child has; None if that of the row or of a child is not known."""
        below = sum_known(child.cpu_ns for child in self.children)
        return None if self.cpu_ns is None or below is None else self.cpu_ns - below

    @property
    def on_core(self) -> float | None:
        """The share of its time that its thread was on a core; None if not measured."""
        return self.cpu_ns / self.total_ns if self.cpu_ns is not None and self.total_ns > 0 else None

    def walk(self) -> Iterator["TimeTree"]:
        """Yield this row and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def rows(self) -> tuple["TimeTree", ...]:
        """All rows below this one, parents first."""
        return tuple(self.walk())[1:]

    def __getitem__(self, path: str) -> "TimeTree":
        return next(row for row in self.walk() if row.path == path)

    def share(self, path: str) -> float:
        """Return the share of this row's time that a row below it has; 0 if there is no such row."""
        return sum(row.total_ns for row in self.walk() if row.path == path) / max(self.total_ns, 1)

    @property
    def unaccounted_ns(self) -> int:
        """Time in no part: what any row has beyond its children.

        Beyond its phases the environment's step has the call into it and the waiting of its threads.
        """
        return sum(row.self_ns for row in self.walk() if row.children and row.path != ENVIRONMENT)

    @property
    def largest(self) -> "TimeTree | None":
        """The part that took most; the environment's step is one part, whatever its phases."""
        parts = [row for row in self.rows if row.path == ENVIRONMENT or not row.children]
        outside = [row for row in parts if row.above != ENVIRONMENT]
        return max(outside, key=lambda row: row.total_ns, default=None)

    def __sub__(self, before: "TimeTree") -> "TimeTree":
        """Return what was added since; rows that gained nothing are left out, what is not known stays so."""
        then = {row.path: row for row in before.children}
        gained = [row - then[row.path] if row.path in then else row for row in self.children]
        cpu_ns = None if self.cpu_ns is None or before.cpu_ns is None else self.cpu_ns - before.cpu_ns
        return replace(
            self,
            calls=self.calls - before.calls,
            total_ns=self.total_ns - before.total_ns,
            cpu_ns=cpu_ns,
            children=tuple(row for row in gained if row.calls > 0 or row.total_ns > 0),
        )

    def renamed(self, rename: Callable[[str], str]) -> "TimeTree":
        """Return the tree with other paths."""
        return replace(
            self, path=rename(self.path), children=tuple(row.renamed(rename) for row in self.children)
        )

    def with_parts(self, path: str, parts: tuple["TimeTree", ...]) -> "TimeTree":
        """Return the tree with further rows below one of its own, before those that are there."""
        if self.path == path:
            return replace(self, children=parts + self.children)
        return replace(self, children=tuple(row.with_parts(path, parts) for row in self.children))

    def with_rests(self, least_ns: float = 0.0) -> "TimeTree":
        """Return the tree with what each row has beyond its parts as the last of them.

        Smaller rests than `least_ns` are left out, but for that of the whole.
        """
        if not self.children:
            return self
        cpu_ns, children = self.self_cpu_ns, tuple(child.with_rests(least_ns) for child in self.children)
        if cpu_ns is not None:
            cpu_ns = max(0, min(cpu_ns, self.self_ns))  # two clocks differ by some microseconds
        path = join(self.path, CALL if self.path == ENVIRONMENT else REST)
        rest = TimeTree(path=path, total_ns=self.self_ns, cpu_ns=cpu_ns)
        is_shown = not self.path or abs(rest.total_ns) >= least_ns
        return replace(self, children=(*children, rest) if is_shown else children)


def join(above: str, name: str) -> str:
    """Return the path of a row below another; that of the whole is empty."""
    return f"{above}/{name}" if above else name


def merge(trees: Iterable[TimeTree]) -> tuple[TimeTree, ...]:
    """Add up rows of one path, such as one region in several threads or windows."""
    groups: dict[str, list[TimeTree]] = {}
    for tree in trees:
        groups.setdefault(tree.path, []).append(tree)
    return tuple(
        rows[0]
        if len(rows) == 1
        else TimeTree(
            path=path,
            calls=sum(row.calls for row in rows),
            total_ns=sum(row.total_ns for row in rows),
            cpu_ns=sum_known(row.cpu_ns for row in rows),
            children=merge(child for row in rows for child in row.children),
            how=rows[-1].how,
        )
        for path, rows in groups.items()
    )


def add(windows: Iterable[TimeTree]) -> TimeTree | None:
    """Return several windows as one; None if there are none."""
    return next(iter(merge(windows)), None)


def sum_known(times: Iterable[int | None]) -> int | None:
    """Return the sum; None if any of them is not known."""
    known = list(times)
    return None if None in known else sum(filter(None, known))


def grow(rows: Iterable[TimeTree], above: str = "") -> tuple[TimeTree, ...]:
    """Put rows below one another by their paths; one without the row it is part of is left out."""
    flat = tuple(rows)
    below = (row for row in flat if row.path and row.above == above)
    return tuple(replace(row, children=grow(flat, row.path)) for row in below)


def caption(tree: TimeTree) -> str:
    """Return what is in no part, and how the times were taken, in words."""
    share = tree.unaccounted_ns / max(tree.total_ns, 1)
    return f"{share:.1%} unaccounted in all; timed by {tree.how}: {HOW[tree.how]}"


def tree_text(tree: TimeTree, turns: int = 1) -> str:
    """Return the tree in plain lines, for a log; of several turns of a loop, the time of one."""
    rows, largest = list(tree.with_rests().walk()), tree.largest
    is_clocked = any(row.on_core is not None for row in rows)
    lines = []
    for row in rows:
        ms, share = row.total_ns / 1e6 / max(turns, 1), row.total_ns / max(tree.total_ns, 1)
        line = f"{'  ' * row.depth + (row.name or WHOLE):<32} {ms:>12,.2f} ms {share:>7.1%}"
        if is_clocked:
            line += f" {'' if row.on_core is None else f'{row.on_core:.0%} CPU':>10}"
        if largest and row.path == largest.path:
            line += f"  {LARGEST}"
        lines.append(line.rstrip())
    return "\n".join([*lines, caption(tree)])


MAIN = 0  # The track of the thread that plays


class Slice(NamedTuple):
    """A stretch of time of one track."""

    name: str
    begin_ns: int
    end_ns: int
    track: int
    category: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Sampled steps, on the clock of `now_ns`."""

    tracks: Mapping[int, str]  # What each is called
    slices: tuple[Slice, ...]  # By track and time, parents before what is inside them
    slow: Mapping[int, int]  # The rank of a slow step to when it began
    about: Mapping[str, Any]
