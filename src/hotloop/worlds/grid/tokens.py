"""The twin's tokens: (location, feature, value), for the world as a whole and for each object."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

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
