"""What stands on the grid: agents and stations, as the twin keeps them."""

from dataclasses import dataclass

WALL = -1
"""What the twin's map holds for a wall; an agent is its index, a station follows the agents."""


@dataclass(slots=True)
class Agent:
    """One agent's state."""

    row: int
    col: int
    spawn_row: int
    spawn_col: int
    came_row: int
    """The cell it came from."""
    came_col: int
    team: int
    group: int
    inventory: list[int]
    counted: list[int]
    """Each reward's value at the last tick."""
    stats: list[int]
    """Goods put into a store, others frozen."""
    vibe: int = 0
    frozen: int = 0
    inside: bool = False
    """Whether an area reaches it."""
    last_action: int = 0
    last_reward: int = 0
    """As the token's byte."""
    total: float = 0.0
    """Reward of the episode."""


@dataclass(slots=True)
class Station:
    """One station's state."""

    kind: int
    """Its place among the rules' kinds."""
    row: int
    col: int
    uses: int
    """How often it can still be used, where its kind is limited."""
    inventory: list[int]
    team: int = 0
    cooldown: int = 0
    clipped: int = 0
