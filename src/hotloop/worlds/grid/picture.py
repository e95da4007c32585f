"""The true state of one env, cell by cell, for people; CHANNELS says what a cell's numbers mean."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hotloop.worlds.grid.features import KINDS
from hotloop.worlds.grid.state import WALL

if TYPE_CHECKING:
    from hotloop.worlds.grid.twin import Grid


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
