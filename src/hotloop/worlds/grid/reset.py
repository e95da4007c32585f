"""How an episode begins: the map's cells, then what is drawn onto free ones."""

from typing import TYPE_CHECKING

from hotloop.core.exact.random import Draws
from hotloop.worlds.grid.events import place_station
from hotloop.worlds.grid.maps import Cell
from hotloop.worlds.grid.rewards import value_of
from hotloop.worlds.grid.state import WALL, Agent

if TYPE_CHECKING:
    from hotloop.worlds.grid.twin import Grid


def fill_map(grid: "Grid") -> None:
    """Put what the map shows, then draw free cells for the other walls, stations and agents."""
    free = []
    for index, content in enumerate(grid.plan["map"]):
        cell = divmod(index, grid.width)
        if content == Cell.WALL:
            grid.objects[cell] = WALL
        elif content >= Cell.STATION:
            place_station(grid, cell, content - Cell.STATION)
        elif content == Cell.SPAWN and len(grid.agents) < grid.plan["agents"]:
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
