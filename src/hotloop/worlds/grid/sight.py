"""What one agent sees: its observation's tokens, read once a step."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hotloop.worlds.grid.features import GLOBAL, KINDS, UNUSED, Feature

Cell = tuple[int, int]
"""(row, col) from the agent's spawn, south and east positive."""
AGENT, WALL = KINDS.index("agent"), KINDS.index("wall")


@dataclass(slots=True)
class SeenStation:
    """A station in view."""

    tag: int
    wait: int = 0
    """Ticks until it can be used, as far as it shows."""
    spent: bool = False
    """It has no uses left."""


@dataclass(slots=True)
class Sight:
    """One observation in the teacher's words."""

    here: Cell = (0, 0)
    last_action: int = 0
    vibe: int = 0
    frozen: int = 0
    inventory: dict[int, int] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    """Every cell it is sure to have seen, whatever is in it."""
    walls: set[Cell] = field(default_factory=set)
    agents: set[Cell] = field(default_factory=set)
    stations: dict[Cell, SeenStation] = field(default_factory=dict)


def look(tokens: NDArray[np.uint8], radius: int) -> Sight:
    """Read an observation of shape [tokens, 3]."""
    sight = Sight()
    used = [tuple(token) for token in tokens.tolist() if token[0] != UNUSED]
    south, east = place({feature: value for where, feature, value in used if where == GLOBAL}, sight)
    for where, feature, value in used:
        if where != GLOBAL:
            cell = south + where // 16 - radius, east + where % 16 - radius
            see(sight, cell, feature, value)
    sight.agents.discard(sight.here)
    sight.cells = seen_cells(sight.here, radius, clear_distance(used, len(tokens), radius))
    return sight


def place(shown: Mapping[int, int], sight: Sight) -> Cell:
    """Read the global tokens: where the agent is and what became of its last action."""
    sight.last_action = shown.get(Feature.LAST_ACTION, 0)
    south = shown.get(Feature.SOUTH, 0) - shown.get(Feature.NORTH, 0)
    sight.here = south, shown.get(Feature.EAST, 0) - shown.get(Feature.WEST, 0)
    return sight.here


def see(sight: Sight, cell: Cell, feature: int, value: int) -> None:
    """Read one token of a cell; an object's tag comes before the features that are used here."""
    if feature == Feature.TAG:
        if value == AGENT:
            sight.agents.add(cell)
        elif value == WALL:
            sight.walls.add(cell)
        else:
            sight.stations[cell] = SeenStation(value)
    elif cell in sight.stations:
        see_station(sight.stations[cell], feature, value)
    elif cell == sight.here:
        see_self(sight, feature, value)


def see_station(station: SeenStation, feature: int, value: int) -> None:
    if feature in (Feature.COOLDOWN, Feature.CLIPPED):
        station.wait = max(station.wait, value)
    elif feature == Feature.USES:
        station.spent = value == 0


def see_self(sight: Sight, feature: int, value: int) -> None:
    if feature == Feature.VIBE:
        sight.vibe = value
    elif feature == Feature.FROZEN:
        sight.frozen = value
    elif feature >= Feature.INVENTORY:
        resource, page = divmod(feature - Feature.INVENTORY, 2)
        sight.inventory[resource] = sight.inventory.get(resource, 0) + (value << 8 * page)


def clear_distance(used: list[tuple[int, int, int]], limit: int, radius: int) -> int:
    """The Manhattan distance up to which nothing can be missing: a full observation may have dropped some."""
    if len(used) < limit:
        return 2 * radius
    where = used[-1][0]
    return -1 if where == GLOBAL else abs(where // 16 - radius) + abs(where % 16 - radius) - 1


def seen_cells(here: Cell, radius: int, distance: int) -> list[Cell]:
    span = range(-radius, radius + 1)
    return [(here[0] + row, here[1] + col) for row in span for col in span if abs(row) + abs(col) <= distance]
