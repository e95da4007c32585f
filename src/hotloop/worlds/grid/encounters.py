"""The twin's encounters: what happens when an agent walks into a station or another agent."""

from typing import TYPE_CHECKING

from hotloop.worlds.grid.rules import MOST, Recipe
from hotloop.worlds.grid.state import WALL, Agent, Station

if TYPE_CHECKING:
    from hotloop.worlds.grid.twin import Grid

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
