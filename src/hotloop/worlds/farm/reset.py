"""How an episode begins: nodes, terrain and settlers; reset.h has the same."""

from collections.abc import Iterator
from math import ceil, isqrt

from hotloop.core.exact.maths import f32
from hotloop.core.exact.random import Draws
from hotloop.core.world import Plan
from hotloop.worlds.farm.state import (
    ALIVE,
    BREEDS,
    FIELDS,
    FULL_HEALTH,
    LANE_NODES,
    LANE_X,
    LANE_Y,
    LANES,
    Agent,
    Node,
    State,
    uniform,
)

CLUSTER = 5
"""Nodes of a cluster."""
CLUSTER_SIZE = 5.0
"""How far from its middle a node is at most, in each direction."""


def begin(plan: Plan, episode_seed: int) -> State:
    """A new episode's state."""
    draws = Draws(episode_seed, 0)
    state = State(episode_seed=episode_seed)
    cap = f32(plan["node_cap"])
    state.nodes = [Node(x, y, cap) for x, y in places(plan, draws)]
    state.fields = [{} for _ in range(FIELDS)]
    state.agents = [Agent() for _ in range(plan["agents"])]
    for slot in range(plan["settlers"]):
        settle(plan, state, slot, draws, slot % BREEDS)
    return state


def settle(plan: Plan, state: State, slot: int, draws: Draws, breed: int) -> None:
    """Put a new agent without parents anywhere."""
    x = f32(uniform(draws.word(slot * LANES + LANE_X)) * plan["width"])
    y = f32(uniform(draws.word(slot * LANES + LANE_Y)) * plan["height"])
    state.agents[slot] = Agent(
        state=ALIVE,
        breed=breed,
        x=x,
        y=y,
        to_x=x,
        to_y=y,
        resources=f32(plan["start_resources"]),
        health=FULL_HEALTH,
        serial=state.serials,
    )
    state.serials += 1


def places(plan: Plan, draws: Draws) -> Iterator[tuple[float, float]]:
    """Where the nodes are."""
    for node in range(plan["nodes"]):
        across, down = (uniform(draws.word(LANE_NODES + 2 * node + axis)) for axis in range(2))
        if plan["placement"] == "random":
            yield f32(across * plan["width"]), f32(down * plan["height"])
        elif plan["placement"] == "grid":
            yield lattice(plan, node)
        else:
            yield clustered(plan, draws, node, across, down)


def lattice(plan: Plan, node: int) -> tuple[float, float]:
    """A place of a regular pattern, row by row."""
    columns = isqrt(plan["nodes"] - 1) + 1
    rows = ceil(plan["nodes"] / columns)
    x = f32(f32(node % columns + 0.5) * f32(plan["width"] / columns))
    y = f32(f32(node // columns + 0.5) * f32(plan["height"] / rows))
    return x, y


def clustered(plan: Plan, draws: Draws, node: int, across: float, down: float) -> tuple[float, float]:
    """Near the middle of the node's cluster, and within the world."""
    middle = LANE_NODES + 2 * (plan["nodes"] + node // CLUSTER)
    x = f32(uniform(draws.word(middle)) * plan["width"])
    y = f32(uniform(draws.word(middle + 1)) * plan["height"])
    x = f32(x + f32(f32(across - 0.5) * (2 * CLUSTER_SIZE)))
    y = f32(y + f32(f32(down - 0.5) * (2 * CLUSTER_SIZE)))
    return min(max(x, 0.0), float(plan["width"])), min(max(y, 0.0), float(plan["height"]))
