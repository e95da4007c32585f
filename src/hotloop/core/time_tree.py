"""TimeTree: where time went, as rows below one another that add up."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeTree:
    """One row and the rows it consists of: total_ns is self_ns and the totals of the children."""

    path: str = ""
    """Names from the outermost inwards, joined by `/`; empty for the wall itself."""
    calls: int = 0
    """0 if nothing was called, as of the wall."""
    total_ns: int
    cpu_ns: int | None = None
    """Time that its thread was on a core: little if it waits, None if not measured, as of marks."""
    children: tuple["TimeTree", ...] = ()

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def self_ns(self) -> int:
        """Time that no child has."""
        return self.total_ns - sum(child.total_ns for child in self.children)

    @property
    def self_cpu_ns(self) -> int | None:
        """CPU time that no child has; None if that of the row or of a child is not known."""
        below = sum_known(child.cpu_ns for child in self.children)
        return None if self.cpu_ns is None or below is None else self.cpu_ns - below

    def walk(self) -> Iterator["TimeTree"]:
        """Yield this row and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


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
        )
        for path, rows in groups.items()
    )


def sum_known(times: Iterable[int | None]) -> int | None:
    """Return the sum; None if any of them is not known."""
    known = list(times)
    return None if None in known else sum(filter(None, known))
