"""The hash of an env's logical state, in an order that digest.h has too."""

from typing import TYPE_CHECKING

import numpy as np

from hotloop.core.exact.random import mix
from hotloop.worlds.grid.state import WALL

if TYPE_CHECKING:
    from hotloop.worlds.grid.twin import Grid


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
