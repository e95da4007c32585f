"""What the teacher remembers of an episode: a frame of the map, and the stations it has met."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from hotloop.worlds.grid.briefing import Briefing
from hotloop.worlds.grid.sight import Cell, Sight

FRAME = 64
"""Side of the square that is remembered; native code keeps a row in a word."""
MAX_STATIONS = 32
MAX_DISTANCE = 255
NEVER = 2**31 - 1


@dataclass(slots=True)
class KnownStation:
    """A station that was seen, and is still where it was."""

    kind: int
    """Its place among the briefing's kinds."""
    ready: int
    """The tick from which it can be used, as far as is known."""


@dataclass(slots=True)
class Atlas:
    """A frame of the map: when the agent's window comes to its edge, it is centred on the agent anew."""

    top: int = -(FRAME // 2)
    left: int = -(FRAME // 2)
    known: set[Cell] = field(default_factory=set)
    blocked: set[Cell] = field(default_factory=set)
    """Walls and stations, which never move; a subset of the known cells."""
    stations: dict[Cell, KnownStation] = field(default_factory=dict)
    """The last that were met for the first time, in that order."""

    def frames(self, cell: Cell) -> bool:
        return 0 <= cell[0] - self.top < FRAME and 0 <= cell[1] - self.left < FRAME

    def centre(self, here: Cell, radius: int) -> bool:
        """Keep the window and a cell around it in the frame; say whether that moved it.

        What then lies outside is forgotten.
        """
        corners = ((here[0] + side, here[1] + side) for side in (-radius - 1, radius + 1))
        if all(self.frames(corner) for corner in corners):
            return False
        self.top, self.left = here[0] - FRAME // 2, here[1] - FRAME // 2
        self.known = {cell for cell in self.known if self.frames(cell)}
        self.blocked = {cell for cell in self.blocked if self.frames(cell)}
        return True

    def remember(self, sight: Sight, briefing: Briefing, tick: int) -> None:
        """Add what is in view."""
        self.known.update(sight.cells, sight.walls, sight.stations)
        self.blocked.update(sight.walls, sight.stations)
        for cell, seen in sight.stations.items():
            if seen.tag in briefing.tags:
                station = self.stations.get(cell) or self.meet(cell, briefing.tags.index(seen.tag))
                station.ready = NEVER if seen.spent else max(station.ready, tick + seen.wait)

    def meet(self, cell: Cell, kind: int) -> KnownStation:
        if len(self.stations) == MAX_STATIONS:
            del self.stations[next(iter(self.stations))]
        return self.stations.setdefault(cell, KnownStation(kind, 0))

    def block(self, cell: Cell) -> None:
        """Take a cell for a wall."""
        if self.frames(cell):
            self.known.add(cell)
            self.blocked.add(cell)


Field = dict[Cell, int]
"""Each cell's distance from the nearest goal, over cells known to be free; up to that of the agent."""


def flood(goals: Iterable[Cell], free: Collection[Cell], here: Cell, steps: tuple[Cell, ...]) -> Field | None:
    """Search breadth first from the goals until the agent is reached; None where it is not."""
    field_: Field = dict.fromkeys(goals, 0)
    front = list(field_)
    for distance in range(1, MAX_DISTANCE + 1):
        front = [cell for cell in neighbours(front, steps) if cell in free and cell not in field_]
        field_ |= dict.fromkeys(front, distance)
        if here in field_ or not front:
            break
    return field_ if here in field_ else None


def neighbours(cells: Iterable[Cell], steps: tuple[Cell, ...]) -> set[Cell]:
    return {(row + rows, col + cols) for row, col in cells for rows, cols in steps}
