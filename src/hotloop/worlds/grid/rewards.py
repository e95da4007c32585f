"""What a reward looks at, and how the next observation shows it."""

import math
from typing import TYPE_CHECKING

from hotloop.worlds.grid.rules import STATS
from hotloop.worlds.grid.state import Agent

if TYPE_CHECKING:
    from hotloop.worlds.grid.twin import Grid


def value_of(grid: "Grid", agent: Agent, reward: int) -> int:
    """What a reward looks at, up to its cap."""
    of, cap = grid.rules.rewards[reward].of, grid.rules.rewards[reward].cap
    if of in grid.rules.resources:
        return min(cap, agent.inventory[grid.rules.resources.index(of)])
    return min(cap, agent.stats[STATS.index(of)])


def reward_byte(reward: float) -> int:
    """The token's byte: hundredths, rounded to nearest, in -128..127."""
    return max(-128, min(127, math.floor(reward * 100.0 + 0.5))) & 0xFF
