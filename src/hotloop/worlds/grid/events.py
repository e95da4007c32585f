"""What the world does by itself: events at its ticks, areas."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hotloop.core.exact.random import Draws
from hotloop.worlds.grid.rules import AGENT, Area, Event
from hotloop.worlds.grid.state import WALL, Agent, Station

if TYPE_CHECKING:
    from hotloop.worlds.grid.twin import Grid

EVENT_LANES = 1 << 20
"""Events draw from lanes of their own: this, plus 4,096 an event."""
SPAWN_TRIES = 16


def fire(grid: "Grid", event: Event) -> None:
    index = grid.rules.events.index(event)
    lane = EVENT_LANES + 4096 * index
    if event.effect == "spawn":
        spawn(grid, event, index, lane)
    for target in () if event.effect == "spawn" else struck(grid, event, lane):
        strike(grid, event, target)
    if event.then:
        fire(grid, grid.events_by_name[event.then])


def struck(grid: "Grid", event: Event, lane: int) -> Sequence[Agent | Station]:
    """Everything of the event's kind, or `count` draws from it, with repetition."""
    kind = -1 if event.kind == AGENT else grid.rules.kinds.index(event.kind)
    of_kind = [station for station in grid.stations if station.kind == kind]
    all_of_it: Sequence[Agent | Station] = grid.agents if event.kind == AGENT else of_kind
    if not event.count or not all_of_it:
        return all_of_it
    draws = Draws(grid.episode_seed, grid.tick)
    return [all_of_it[draws.below(lane + k, len(all_of_it))] for k in range(event.count)]


def strike(grid: "Grid", event: Event, target: Agent | Station) -> None:
    grid.count(f"event.{event.effect}")
    if event.effect == "drain":
        resource = grid.rules.resources.index(event.resource)
        target.inventory[resource] = max(0, target.inventory[resource] - event.amount)
    elif event.effect == "team" and grid.plan["teams"]:
        target.team = target.team % grid.plan["teams"] + 1
    elif isinstance(target, Station):
        target.clipped = event.amount


def spawn(grid: "Grid", event: Event, index: int, lane: int) -> None:
    """Make `count` stations, each on the first free of 16 drawn cells, up to `amount` an episode."""
    draws = Draws(grid.episode_seed, grid.tick)
    for k in range(max(event.count, 1)):
        if grid.spawned[index] == event.amount:
            return
        for attempt in range(SPAWN_TRIES):
            at = lane + 2 * (k * SPAWN_TRIES + attempt)
            cell = draws.below(at, grid.height), draws.below(at + 1, grid.width)
            if cell not in grid.objects:
                place_station(grid, cell, grid.rules.kinds.index(event.kind))
                grid.spawned[index] += 1
                grid.count("event.spawn")
                break


def place_station(grid: "Grid", cell: tuple[int, int], kind: int) -> None:
    grid.objects[cell] = grid.plan["agents"] + len(grid.stations)
    uses = grid.recipes[kind][0].uses
    grid.stations.append(Station(kind, *cell, uses, [0] * len(grid.rules.resources)))


def add(grid: "Grid", agent: Agent, resource: str, amount: int) -> None:
    """Change what an agent holds, within 0 and its cap; what is over the cap already stays."""
    index = grid.rules.resources.index(resource)
    held = agent.inventory[index]
    agent.inventory[index] = max(0, min(held + amount, max(held, grid.rules.cap(resource))))


def radiate(grid: "Grid", area: Area, source: Agent | Station, inside: list[bool]) -> None:
    """Change what agents in the square hold, row by row; a carrier is not in its own area."""
    reach = range(-area.radius, area.radius + 1)
    for rows in reach:
        for cols in reach:
            found = grid.objects.get((source.row + rows, source.col + cols), WALL)
            if 0 <= found < len(grid.agents) and grid.agents[found] is not source:
                agent = grid.agents[found]
                friends = agent.team == source.team != 0
                enemies = agent.team != source.team and 0 not in (agent.team, source.team)
                if {"all": True, "friends": friends, "enemies": enemies}[area.reach]:
                    add(grid, agent, area.resource, area.amount)
                    inside[found] = True
