"""The true state of one env, cell by cell, for people; the entry's `channels` say what the numbers mean."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hotloop.worlds.farm.state import ALIVE, TRAIL, cell

if TYPE_CHECKING:
    from hotloop.worlds.farm.twin import Farm


def picture(farm: "Farm") -> NDArray[np.uint8]:
    """Who stands where, what grows there, and who went by."""
    width, height = farm.plan["width"], farm.plan["height"]
    cells = np.zeros((height, width, 4), np.uint8)
    for row in range(height):
        for col in range(width):
            fresh = farm.state.fields[TRAIL].get(farm.cell_at(col, row), 0.0)
            cells[row, col, 3] = int(fresh * 255.0)
    for node in farm.state.nodes:
        share = node.amount / farm.node_cap
        cells[cell(node.y, height), cell(node.x, width), 2] = int(share * 255.0)
    for agent in farm.state.agents:
        if agent.state == ALIVE:
            at = cells[cell(agent.y, height), cell(agent.x, width)]
            at[0], at[1] = agent.breed + 1, int(agent.health)
    return cells
