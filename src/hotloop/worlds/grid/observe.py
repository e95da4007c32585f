"""What an agent sees, as tokens (location, feature, value), and what people see, as cells.

An agent's tokens are those of the world as a whole, then cell by cell of its window; observe.h, tokens.h and
picture.h have the same.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hotloop.worlds.grid.features import GLOBAL, KINDS, Feature
from hotloop.worlds.grid.state import WALL, Agent, Station

if TYPE_CHECKING:
    from hotloop.worlds.grid.twin import Grid


def global_tokens(grid: "Grid", agent: Agent) -> Iterator[tuple[int, int, int]]:
    limit = grid.plan["max_steps"]
    yield GLOBAL, Feature.COMPLETION, min(255, grid.tick * 255 // limit) if limit else 0
    yield GLOBAL, Feature.LAST_ACTION, agent.last_action
    yield GLOBAL, Feature.LAST_REWARD, agent.last_reward
    east, south = agent.col - agent.spawn_col, agent.row - agent.spawn_row
    if east:
        yield GLOBAL, Feature.EAST if east > 0 else Feature.WEST, abs(east)
    if south:
        yield GLOBAL, Feature.SOUTH if south > 0 else Feature.NORTH, abs(south)


def object_tokens(grid: "Grid", found: int) -> Iterator[tuple[int, int]]:
    if found == WALL:
        yield Feature.TAG, KINDS.index("wall")
    elif found < len(grid.agents):
        yield from agent_tokens(grid.agents[found], found)
    else:
        yield from station_tokens(grid, grid.stations[found - len(grid.agents)])


def agent_tokens(agent: Agent, index: int) -> Iterator[tuple[int, int]]:
    if agent.team:
        yield Feature.TEAM, agent.team
    yield Feature.TAG, KINDS.index("agent")
    if agent.vibe:
        yield Feature.VIBE, agent.vibe
    yield from inventory_tokens(agent.inventory)
    yield Feature.GROUP, agent.group
    yield Feature.FROZEN, min(agent.frozen, 255)
    yield Feature.AGENT_ID, index & 0xFF


def station_tokens(grid: "Grid", station: Station) -> Iterator[tuple[int, int]]:
    if station.team:
        yield Feature.TEAM, station.team
    yield Feature.TAG, grid.rules.tag(grid.rules.kinds[station.kind])
    yield from inventory_tokens(station.inventory)
    yield Feature.COOLDOWN, min(station.cooldown, 255)
    if grid.recipes[station.kind][0].uses:
        yield Feature.USES, min(station.uses, 255)
    if station.clipped:
        yield Feature.CLIPPED, min(station.clipped, 255)


def inventory_tokens(inventory: list[int]) -> Iterator[tuple[int, int]]:
    """Each held resource in base 256; the high byte only where it is needed."""
    for resource, amount in enumerate(inventory):
        if amount:
            yield Feature.INVENTORY + 2 * resource, amount & 0xFF
            if amount > 0xFF:
                yield Feature.INVENTORY + 2 * resource + 1, amount >> 8


def window_cells(radius: int) -> Iterator[tuple[int, int, int]]:
    """Yield (row, col, location) of a window's cells in token order.

    By growing Manhattan distance; at one distance rows from -d to +d, in each the left column first.
    """
    for distance in range(2 * radius + 1):
        for row in range(-distance, distance + 1):
            reach = distance - abs(row)
            for col in (-reach, reach) if reach else (0,):
                if abs(row) <= radius and abs(col) <= radius:
                    yield row, col, (row + radius) * 16 + col + radius


def window_tokens(
    grid: "Grid", agent: Agent, known: dict[int, tuple[tuple[int, int], ...]]
) -> list[tuple[int, int, int]]:
    """What is around an agent; objects look alike to all who see them, so each is told of once a step."""
    row, col, objects = agent.row, agent.col, grid.objects
    tokens: list[tuple[int, int, int]] = []
    for rows, cols, location in grid.window:
        found = objects.get((row + rows, col + cols))
        if found is not None:
            if found not in known:
                known[found] = tuple(object_tokens(grid, found))
            tokens += [(location, feature, value) for feature, value in known[found]]
    return tokens


def picture(grid: "Grid") -> NDArray[np.uint8]:
    """What stands where, for people: (tag + 1, team, ticks frozen or clipped, vibe) a cell."""
    cells = np.zeros((grid.height, grid.width, 4), np.uint8)
    for cell, found in grid.objects.items():
        if found == WALL:
            cells[cell] = KINDS.index("wall") + 1, 0, 0, 0
    for agent in grid.agents:
        cells[agent.row, agent.col] = 1, agent.team, min(agent.frozen, 255), agent.vibe
    for station in grid.stations:
        tag = grid.rules.tag(grid.rules.kinds[station.kind])
        cells[station.row, station.col] = tag + 1, station.team, min(station.clipped, 255), 0
    return cells
