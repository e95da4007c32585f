"""Maps, drawn from a seed or written as text, one character a cell, and how an episode begins on one.

reset.h begins an episode in the same way.
"""

from collections.abc import Mapping
from enum import IntEnum
from importlib import resources as package_files
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.core.errors import InputError
from hotloop.core.exact_math import Draws
from hotloop.worlds.grid.events import place_station, value_of
from hotloop.worlds.grid.state import WALL, Agent

if TYPE_CHECKING:
    from hotloop.worlds.grid.twin import Grid

MAX_SIDE = 255


class MapCell(IntEnum):
    """What a map's cell holds before anything moves."""

    EMPTY = 0
    WALL = 1
    SPAWN = 2
    STATION = 3  # The first kind of station; the others follow


# What characters mean in every map; a table's stations add their symbols.
LEGEND = {".": MapCell.EMPTY, " ": MapCell.EMPTY, "#": MapCell.WALL, "@": MapCell.SPAWN}


def parse_size(size: str) -> tuple[int, int]:
    """Read "40" or "30x60" as height and width."""
    parts = size.lower().split("x")
    if len(parts) > 2 or not all(part.strip().isdigit() for part in parts):
        raise InputError(f"map_size={size}: expected one number or HEIGHTxWIDTH, such as 40 or 30x60")
    height, width = int(parts[0]), int(parts[-1])
    if not (3 <= height <= MAX_SIDE and 3 <= width <= MAX_SIDE):
        raise InputError(f"map_size={size}: height and width must be from 3 to {MAX_SIDE}")
    return height, width


def bordered(height: int, width: int) -> list[list[int]]:
    """An empty map with a wall around it."""
    inside: list[int] = [MapCell.WALL, *[MapCell.EMPTY] * (width - 2), MapCell.WALL]
    return [[MapCell.WALL] * width, *(list(inside) for _ in range(height - 2)), [MapCell.WALL] * width]


def read_map(text_or_name: str, legend: Mapping[str, int]) -> list[list[int]]:
    """Read a map given as text of several lines, by the name of a built-in one, or as a file's path."""
    if "\n" in text_or_name:
        return parse_map(text_or_name, legend)
    shipped = package_files.files("hotloop.worlds.grid") / "tables" / f"{text_or_name}.txt"
    try:
        text = shipped.read_text() if shipped.is_file() else Path(text_or_name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"map={text_or_name}: neither built in nor a readable text file ({error})"
        ) from error
    return parse_map(text, legend)


def parse_map(text: str, legend: Mapping[str, int]) -> list[list[int]]:
    """Turn text into cells; every line must be as long as the first, every character in the legend."""
    lines = text.strip("\n").split("\n")
    width = len(lines[0])
    if not (1 <= width <= MAX_SIDE and len(lines) <= MAX_SIDE):
        raise InputError(f"map of {len(lines)}x{width}: height and width must be from 1 to {MAX_SIDE}")
    for number, line in enumerate(lines, 1):
        if len(line) != width:
            raise InputError(f"map line {number} has {len(line)} characters, line 1 has {width}: make it so")
        for column, character in enumerate(line, 1):
            if character not in legend:
                where = f"map line {number}, column {column}"
                raise InputError(
                    f"{where}: unknown character {character!r}; known: {' '.join(map(repr, legend))}"
                )
    cells = [[legend[character] for character in line] for line in lines]
    if not any(MapCell.SPAWN in row for row in cells):
        raise InputError("the map has no spawn cell: mark at least one with @")
    return cells


def fill_map(grid: "Grid") -> None:
    """Put what the map shows, then draw free cells for the other walls, stations and agents."""
    free = []
    for index, content in enumerate(grid.plan["map"]):
        cell = divmod(index, grid.width)
        if content == MapCell.WALL:
            grid.objects[cell] = WALL
        elif content >= MapCell.STATION:
            place_station(grid, cell, content - MapCell.STATION)
        elif content == MapCell.SPAWN and len(grid.agents) < grid.plan["agents"]:
            place_agent(grid, cell)
        else:
            free.append(cell)
    draws = Draws(grid.episode_seed, 0)
    walls, kinds = grid.plan["walls"], grid.plan["placed"]
    for k in range(walls + len(kinds) + grid.plan["agents"] - len(grid.agents)):
        j = k + draws.below(k, len(free) - k)
        free[k], free[j] = free[j], free[k]
        if k < walls:
            grid.objects[free[k]] = WALL
        elif k < walls + len(kinds):
            place_station(grid, free[k], kinds[k - walls])
        else:
            place_agent(grid, free[k])


def place_agent(grid: "Grid", cell: tuple[int, int]) -> None:
    index, teams = len(grid.agents), grid.plan["teams"]
    grid.objects[cell] = index
    inventory = [grid.rules.start.get(name, 0) for name in grid.rules.resources]
    team = 1 + index % teams if teams else 0
    group = index % teams if teams else 0
    agent = Agent(*cell, *cell, *cell, team, group, inventory, [], [0, 0])
    agent.counted = [value_of(grid, agent, reward) for reward in range(len(grid.rules.rewards))]
    grid.agents.append(agent)
