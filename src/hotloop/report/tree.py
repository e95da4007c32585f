"""The lines of a loop's profile: a tree in which children, self and unaccounted add up to their parent."""

from collections.abc import Iterator
from dataclasses import dataclass

from hotloop.core.record import STEP, WALL, Phase, Record

SELF = "self"
"""What a row has beyond its children."""
SMALLEST = 0.0005
"""Of the wall; a self below it is not worth a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One line of a tree."""

    name: str
    depth: int
    calls: int | None
    """None where it is the rest of something."""
    us_per_env_step: float
    of_wall: float

    @property
    def indented(self) -> str:
        return "  " * self.depth + self.name

    @property
    def is_whole(self) -> bool:
        return self.depth == 0


def is_tree(record: Record) -> bool:
    """Whether a profile is of a loop, rather than of the phases of a batch's step."""
    paths = [phase.path for phase in record.phases]
    return WALL in paths and STEP not in paths


def branches(record: Record) -> tuple[Branch, ...]:
    """The tree from the whole inwards, the largest first, and at its end what is in no row."""
    rows = {phase.path: phase for phase in record.phases}
    wall_ns, env_steps = rows[WALL].total_ns, max(record.work.env_steps, 1)

    def branch(name: str, depth: int, ns: int, calls: int | None = None) -> Branch:
        share = ns / wall_ns
        return Branch(
            name=name, depth=depth, calls=calls, us_per_env_step=ns / env_steps / 1e3, of_wall=share
        )

    def walk(row: Phase, depth: int) -> Iterator[Branch]:
        yield branch(row.path.rpartition("/")[2], depth, row.total_ns, row.calls)
        below = children(rows, row.path)
        for child in sorted(below, key=lambda each: -each.total_ns):
            yield from walk(child, depth + 1)
        own_ns = row.total_ns - sum(child.total_ns for child in below)
        if below and depth and abs(own_ns) > SMALLEST * wall_ns:
            yield branch(SELF, depth + 1, own_ns)

    return (*walk(rows[WALL], 0), branch("unaccounted", 1, record.unaccounted_ns or 0))


def children(rows: dict[str, Phase], path: str) -> list[Phase]:
    return [row for each, row in rows.items() if each.rpartition("/")[0] == path]
