"""What happens on the grid: events and areas, encounters of agents, and what a reward looks at.

events.h, encounters.h and rewards.h have the same.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hotloop.core.exact_math import Draws
from hotloop.worlds.grid.rules import AGENT, MOST, STATS, Area, Event, Recipe
from hotloop.worlds.grid.state import WALL, Agent, Station

if TYPE_CHECKING:
    from hotloop.worlds.grid.twin import Grid

EVENT_LANES = 1 << 20  # Events draw from lanes of their own: this, plus 4,096 an event
SPAWN_TRIES = 16


def fire(grid: "Grid", event: Event) -> None:
    index = grid.rules.events.index(event)
    lane = EVENT_LANES + 4096 * index
    if event.effect == "spawn":
        spawn(grid, event, index, lane)
    else:
        # Everything of the event's kind, or `count` draws from it, with repetition.
        kind = -1 if event.kind == AGENT else grid.rules.kinds.index(event.kind)
        of_kind = [station for station in grid.stations if station.kind == kind]
        targets: Sequence[Agent | Station] = grid.agents if event.kind == AGENT else of_kind
        if event.count and targets:
            draws = Draws(grid.episode_seed, grid.tick)
            targets = [targets[draws.below(lane + k, len(targets))] for k in range(event.count)]
        for target in targets:
            strike(grid, event, target)
    if event.then:
        fire(grid, grid.events_by_name[event.then])


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


AROUND = tuple((row, col) for row in (-1, 0, 1) for col in (-1, 0, 1) if row or col)


def use(grid: "Grid", agent: Agent, station: Station) -> bool:
    """Use a station by the first of its rows that the agent can meet."""
    kind = grid.recipes[station.kind][0]
    if not station.clipped and not station.cooldown and (not kind.uses or station.uses):
        for row in grid.recipes[station.kind]:
            if can_meet(grid, agent, station, row):
                trade(grid, agent, station, kind, row)
                return grid.count("use")
    return grid.miss("use.refused")


def can_meet(grid: "Grid", agent: Agent, station: Station, row: Recipe) -> bool:
    held = dict(zip(grid.rules.resources, agent.inventory, strict=True))
    has_vibe = row.vibe in (0, agent.vibe)
    has_goods = all(held[name] >= amount for name, amount in row.takes.items())
    has_room = not row.gives or any(held[name] < grid.rules.cap(name) for name in row.gives)
    return has_vibe and has_goods and has_room and helpers(grid, agent, station) >= row.neighbours


def helpers(grid: "Grid", agent: Agent, station: Station) -> int:
    """How many other agents stand beside a station."""
    beside = [(station.row + rows, station.col + cols) for rows, cols in AROUND]
    found = [grid.objects.get(cell, WALL) for cell in beside]
    return sum(0 <= other < len(grid.agents) and grid.agents[other] is not agent for other in found)


def trade(grid: "Grid", agent: Agent, station: Station, kind: Recipe, row: Recipe) -> None:
    for index, name in enumerate(grid.rules.resources):
        taken = row.takes.get(name, 0)
        agent.inventory[index] -= taken
        if kind.stores:
            station.inventory[index] = min(MOST, station.inventory[index] + taken)
            agent.stats[0] = min(MOST, agent.stats[0] + taken)
        if name in row.gives:
            held = agent.inventory[index] + row.gives[name]
            agent.inventory[index] = min(grid.rules.cap(name), held)
    station.cooldown = row.cooldown
    station.uses -= 1 if kind.uses else 0
    if kind.claims and agent.team not in (0, station.team):
        station.team = agent.team
        grid.count("claim")
    if row.neighbours:
        grid.count("use.helped")


def meet(grid: "Grid", index: int, other: int) -> bool:
    """Attack in the attack vibe; else swap places with a frozen team mate."""
    agent, target = grid.agents[index], grid.agents[other]
    mates = agent.team == target.team != 0
    if grid.rules.attack_vibe and agent.vibe == grid.rules.attack_vibe:
        return not mates and not target.frozen and attack(grid, agent, target)
    return mates and bool(target.frozen) and swap(grid, index, other)


def attack(grid: "Grid", agent: Agent, target: Agent) -> bool:
    """Spend a shot; a shield absorbs it, else the target freezes and loses its loot."""
    resources = grid.rules.resources
    shot = resources.index(grid.rules.attack_costs)
    if not agent.inventory[shot]:
        return False
    agent.inventory[shot] -= 1
    shield = resources.index(grid.rules.shield) if grid.rules.shield else None
    if shield is not None and target.inventory[shield]:
        target.inventory[shield] -= 1
        return grid.count("attack.absorbed")
    target.frozen = grid.rules.freeze
    agent.stats[1] = min(MOST, agent.stats[1] + 1)
    for name in grid.rules.loot:
        loot = resources.index(name)
        moved = min(target.inventory[loot], grid.rules.cap(name) - agent.inventory[loot])
        target.inventory[loot] -= moved
        agent.inventory[loot] += moved
        grid.count("loot", moved)
    return grid.count("attack.hit")


def swap(grid: "Grid", index: int, other: int) -> bool:
    agent, target = grid.agents[index], grid.agents[other]
    if not grid.pay_move(agent):
        return False
    for one in (agent, target):
        one.came_row, one.came_col = one.row, one.col
    agent.row, agent.col, target.row, target.col = target.row, target.col, agent.row, agent.col
    grid.objects[agent.row, agent.col] = index
    grid.objects[target.row, target.col] = other
    return grid.count("swap")


def value_of(grid: "Grid", agent: Agent, reward: int) -> int:
    """What a reward looks at, up to its cap."""
    of, cap = grid.rules.rewards[reward].of, grid.rules.rewards[reward].cap
    if of in grid.rules.resources:
        return min(cap, agent.inventory[grid.rules.resources.index(of)])
    return min(cap, agent.stats[STATS.index(of)])
