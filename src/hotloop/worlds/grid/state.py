"""What stands on the grid, as the twin keeps it, and its hash, in an order that digest.h has too."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hotloop.core.exact_math import mix

if TYPE_CHECKING:
    from hotloop.worlds.grid.twin import Grid

WALL = -1  # What the twin's map holds for a wall; an agent is its index, a station follows the agents


@dataclass(slots=True)
class Agent:
    """One agent's state."""

    row: int
    col: int
    spawn_row: int
    spawn_col: int
    came_row: int  # The cell it came from
    came_col: int
    team: int
    group: int
    inventory: list[int]
    counted: list[int]  # Each reward's value at the last tick
    stats: list[int]  # Goods put into a store, others frozen
    vibe: int = 0
    frozen: int = 0
    inside: bool = False  # Whether an area reaches it
    last_action: int = 0
    last_reward: int = 0  # As the token's byte
    total: float = 0.0  # Reward of the episode


@dataclass(slots=True)
class Station:
    """One station's state."""

    kind: int  # Its place among the rules' kinds
    row: int
    col: int
    uses: int  # How often it can still be used, where its kind is limited
    inventory: list[int]
    team: int = 0
    cooldown: int = 0
    clipped: int = 0


def digest(grid: "Grid") -> int:
    words: list[int] = [grid.episode_seed, grid.tick, *grid.wall_words, *grid.held, *grid.spawned]
    for a in grid.agents:
        places = (a.row, a.col, a.spawn_row, a.spawn_col, a.came_row, a.came_col)
        words.append(int.from_bytes(bytes((*places, a.last_action, a.last_reward)), "little"))
        words.append(a.team | a.group << 8 | a.vibe << 16 | a.inside << 24 | a.frozen << 32)
        words.append(int(np.float32(a.total).view(np.uint32)))
        words += a.inventory + a.counted + a.stats
    for s in grid.stations:
        words.append(int.from_bytes(bytes((s.kind, s.row, s.col, s.team)), "little"))
        words.append(s.cooldown | s.clipped << 32)
        words += [s.uses, *s.inventory]
    return mix(*words)


def pack_walls(grid: "Grid") -> list[int]:
    """The walls as bits, 64 columns a word, row by row; walls never move, so once an episode."""
    words = []
    for row in range(grid.height):
        for start in range(0, grid.width, 64):
            cols = range(start, min(start + 64, grid.width))
            words.append(sum(1 << (col - start) for col in cols if grid.objects.get((row, col)) == WALL))
    return words
