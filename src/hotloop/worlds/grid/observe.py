"""An agent's tokens: those of the world as a whole, then cell by cell of its window."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hotloop.worlds.grid.state import Agent
from hotloop.worlds.grid.tokens import object_tokens

if TYPE_CHECKING:
    from hotloop.worlds.grid.twin import Grid


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
