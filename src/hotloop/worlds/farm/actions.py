"""The eight actions, why each may fail, and a player who chooses by chance; actions.h and players.h agree.

Others are where they stood when the step began: a move lands, and a child is seen, when the environment is
updated. What others own and whether they live is as it is when an agent's turn comes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from hotloop.core.exact_math import f32
from hotloop.core.world import Plan
from hotloop.worlds.farm.state import (
    ALIVE,
    DAMAGE,
    DYING,
    FREE,
    FULL_HEALTH,
    KNOWN,
    LANE_CHANCE,
    LANE_WAY,
    LANES,
    SIGNAL,
    TRAIL,
    FarmAgent,
)

if TYPE_CHECKING:
    from hotloop.worlds.farm.twin import Farm

NAMES = ("defend", "attack", "gather", "share", "move", "reproduce", "pass", "communicate")
PASS = 6

ATTACK_RANGE = 20.0
GATHER_RANGE = 30.0
SHARE_RANGE = 30.0
HEARING = 50.0

DEFENCE_TURNS = 3
GIFT = 2.0
KEPT = 5.0  # What a sharing agent keeps at least
WAYS = ((0.0, -1.0), (0.0, 1.0), (-1.0, 0.0), (1.0, 0.0))


def distance2(ax: float, ay: float, bx: float, by: float) -> float:
    """The square of a distance, in float32."""
    dx, dy = f32(ax - bx), f32(ay - by)
    return f32(f32(dx * dx) + f32(dy * dy))


def near(farm: "Farm", slot: int, reach: float) -> Iterator[tuple[float, int]]:
    """The living others within reach: the square of the distance, and the slot."""
    farm.count("index.queries")
    me = farm.state.agents[slot]
    for other in farm.indexed:
        agent = farm.state.agents[other]
        away = distance2(agent.x, agent.y, me.x, me.y)
        if other != slot and agent.state == ALIVE and away <= reach * reach:
            yield away, other


def defend(farm: "Farm", slot: int) -> str:
    me = farm.state.agents[slot]
    before = me.health
    me.defending = DEFENCE_TURNS
    me.health = min(f32(me.health + 1), FULL_HEALTH)
    farm.effect = (-1, f32(me.health - before), me.health)
    return ""


def attack(farm: "Farm", slot: int) -> str:
    """Hurt the nearest other by the strength that health leaves."""
    found = min(near(farm, slot, ATTACK_RANGE), default=None)
    if found is None:
        return "no_target"
    me, other = farm.state.agents[slot], farm.state.agents[found[1]]
    damage = f32(farm.strength * f32(me.health / FULL_HEALTH))
    if other.defending > 0:
        damage = f32(damage * 0.5)
    other.health = f32(other.health - damage)
    cell = farm.cell_of(other)
    heat = farm.state.fields[DAMAGE]
    heat[cell] = f32(heat.get(cell, 0.0) + f32(damage / FULL_HEALTH))
    farm.effect = (other.serial, damage, other.health)
    if other.health <= 0:
        die(farm, other, "killed")
    return ""


def gather(farm: "Farm", slot: int) -> str:
    """Take from the nearest node that has anything."""
    farm.count("index.queries")
    me, nodes = farm.state.agents[slot], farm.state.nodes
    each = ((distance2(node.x, node.y, me.x, me.y), k) for k, node in enumerate(nodes) if node.amount > 0)
    away, found = min(each, default=(0.0, -1))
    if found < 0 or away > GATHER_RANGE * GATHER_RANGE:
        farm.state.fields[KNOWN][farm.cell_of(me)] = 1.0
        return "no_food"
    taken = min(nodes[found].amount, farm.max_gather)
    nodes[found].amount = f32(nodes[found].amount - taken)
    me.resources = f32(me.resources + taken)
    me.goal = found
    farm.effect = (found, taken, nodes[found].amount)
    return ""


def share(farm: "Farm", slot: int) -> str:
    """Give to the poorest, the first of equals."""
    me = farm.state.agents[slot]
    if f32(me.resources - GIFT) < KEPT:
        return "too_poor"
    each = ((farm.state.agents[other].resources, other) for _, other in near(farm, slot, SHARE_RANGE))
    found = min(each, default=None)
    if found is None:
        return "no_target"
    other = farm.state.agents[found[1]]
    me.resources = f32(me.resources - GIFT)
    other.resources = f32(other.resources + GIFT)
    farm.effect = (other.serial, GIFT, other.resources)
    return ""


def move(farm: "Farm", slot: int) -> str:
    """Go in one of four directions, half as far on rough ground."""
    me = farm.state.agents[slot]
    across, down = WAYS[farm.draws.below(slot * LANES + LANE_WAY, 4)]
    cell = farm.cell_of(me)
    length = f32(farm.max_movement / farm.terrain[cell])
    me.to_x = min(max(f32(me.x + f32(across * length)), 0.0), farm.width)
    me.to_y = min(max(f32(me.y + f32(down * length)), 0.0), farm.height)
    if me.to_x == me.x and me.to_y == me.y:
        return "blocked"
    farm.state.fields[TRAIL][cell] = 1.0
    return ""


def reproduce(farm: "Farm", slot: int) -> str:
    """Have a child, in the lowest slot that was free when the step began."""
    me, state = farm.state.agents[slot], farm.state
    if me.resources < farm.birth_minimum:
        return "too_poor"
    free = next((k for k, agent in enumerate(state.agents) if agent.state == FREE), None)
    if free is None:
        return "full"
    if farm.is_barred():
        return "barred"
    if farm.draws.word(slot * LANES + LANE_CHANCE) >> 32 >= farm.plan["birth_chance"]:
        return "unlucky"
    me.resources = f32(me.resources - farm.birth_cost)
    state.agents[free] = FarmAgent(
        state=ALIVE,
        breed=me.breed,
        x=me.x,
        y=me.y,
        to_x=me.x,
        to_y=me.y,
        resources=farm.start_resources,
        health=FULL_HEALTH,
        serial=state.serials,
        parent=me.serial,
        generation=me.generation + 1,
    )
    farm.effect = (state.serials, farm.birth_cost, me.resources)
    state.serials += 1
    state.births += 1
    farm.count("birth")
    return ""


def communicate(farm: "Farm", slot: int) -> str:
    """Leave a signal for one's own type, if any of it is in hearing."""
    me, agents = farm.state.agents[slot], farm.state.agents
    if not any(agents[other].breed == me.breed for _, other in near(farm, slot, HEARING)):
        return "unheard"
    farm.state.fields[SIGNAL + me.breed][farm.cell_of(me)] = 1.0
    return ""


ACTIONS: tuple[Callable[["Farm", int], str], ...] = (
    *(defend, attack, gather, share, move, reproduce, lambda farm, slot: "", communicate),
)


def die(farm: "Farm", agent: FarmAgent, cause: str) -> None:
    agent.state = DYING
    if cause == "killed":
        farm.state.killed += 1
    else:
        farm.state.starved += 1
    farm.count(f"death.{cause}")


WEIGHTS = (4, 4, 26, 6, 36, 12, 4, 8)  # Of a hundred decisions, by action


class Weighted:
    """Moves and gathers most of the time; what it does is decided by each agent's luck."""

    def __init__(self, plan: Plan, seen: Mapping[str, Any]) -> None:
        self.luck = seen["luck"]
        limits = tuple(accumulate(WEIGHTS))
        self.table = tuple(sum(part >= limit for limit in limits) for part in range(limits[-1]))

    def restart(self) -> None:
        """There is nothing to forget."""

    def choose(self) -> Sequence[int]:
        return [self.table[luck * len(self.table) >> 31] for luck in self.luck.tolist()]
