"""What agents see: thirteen channels around them, or their own state; observe.h has the same."""

from typing import TYPE_CHECKING

from hotloop.core.exact.maths import f32
from hotloop.worlds.farm.state import (
    ALIVE,
    BREEDS,
    DAMAGE,
    FULL_HEALTH,
    KNOWN,
    SIGNAL,
    TRAIL,
    Agent,
    cell,
)

if TYPE_CHECKING:
    from hotloop.worlds.farm.twin import Farm

LANDMARKS = 25
"""Cells from one landmark to the next."""

SELF, ALLIES, ENEMIES, FOOD, OBSTACLES, TERRAIN, VISIBILITY = range(7)
KNOWN_EMPTY, HEAT, TRAILS, ALLY_SIGNAL, GOAL, LANDMARK = range(7, 13)
SIGNALS = 13


def food(farm: "Farm") -> dict[int, float]:
    """What nodes hold, as shares of a full one, by cell; added up in the nodes' order."""
    plane: dict[int, float] = {}
    for node in farm.state.nodes:
        share = f32(node.amount / farm.node_cap)
        if not farm.plan["bilinear"]:
            at = farm.cell_at(cell(node.x, farm.plan["width"]), cell(node.y, farm.plan["height"]))
            plane[at] = f32(plane.get(at, 0.0) + share)
            continue
        left, top = f32(node.x + 0.5), f32(node.y + 0.5)  # one cell to the right and down, so never below 0
        col, row = int(left), int(top)
        right, low = f32(left - col), f32(top - row)
        parts = (
            (row - 1, col - 1, f32(f32(1 - right) * f32(1 - low))),
            (row - 1, col, f32(right * f32(1 - low))),
            (row, col - 1, f32(f32(1 - right) * low)),
            (row, col, f32(right * low)),
        )
        for down, across, part in parts:
            at = farm.cell_at(across, down)
            plane[at] = f32(plane.get(at, 0.0) + f32(share * part))
    return plane


def dense(farm: "Farm", values: dict[int, float]) -> list[float]:
    """Every cell's value, the margin's included."""
    cells = [0.0] * (farm.stride * (farm.plan["height"] + 2 * farm.plan["radius"]))
    for at, value in values.items():
        cells[at] = value
    return cells


class Still:
    """What of the world never changes: its ground, where it ends, and its landmarks."""

    def __init__(self, farm: "Farm") -> None:
        inside = [
            (farm.cell_at(col, row), col, row)
            for row in range(farm.plan["height"])
            for col in range(farm.plan["width"])
        ]
        marked = {at for at, col, row in inside if col % LANDMARKS == 0 and row % LANDMARKS == 0}
        self.inside = dense(farm, {at: 1.0 for at, _, _ in inside})
        self.outside = [1.0 - within for within in self.inside]
        self.landmarks = dense(farm, dict.fromkeys(marked, 1.0))
        r = farm.plan["radius"]
        span = range(-r, r + 1)
        self.circle = [float(x * x + y * y <= r * r) for y in span for x in span]


def planes(farm: "Farm", still: Still) -> dict[int, list[float]]:
    """Whole channels, of which agents see windows; signals are kept by type, beyond the channels."""
    fields = [dense(farm, values) for values in farm.state.fields]
    return {
        FOOD: dense(farm, food(farm)),
        OBSTACLES: still.outside,
        TERRAIN: dense(farm, farm.terrain),
        VISIBILITY: still.inside,
        KNOWN_EMPTY: fields[KNOWN],
        HEAT: fields[DAMAGE],
        TRAILS: fields[TRAIL],
        LANDMARK: still.landmarks,
        **{SIGNALS + breed: fields[SIGNAL + breed] for breed in range(BREEDS)},
    }


def look(farm: "Farm", slot: int, shown: dict[int, list[float]], circle: list[float]) -> list[list[float]]:
    """One agent's channels, each row by row."""
    me, plan = farm.state.agents[slot], farm.plan
    r, side = plan["radius"], 2 * plan["radius"] + 1
    col, row = cell(me.x, plan["width"]), cell(me.y, plan["height"])
    corners = [farm.cell_at(col - r, row + down) for down in range(-r, r + 1)]
    seen = [[0.0] * (side * side) for _ in range(13)]
    for channel, values in shown.items():
        if channel < SIGNALS or channel == SIGNALS + me.breed:
            window = [value for at in corners for value in values[at : at + side]]
            seen[channel if channel < SIGNALS else ALLY_SIGNAL] = window
    seen[VISIBILITY] = [min(pair) for pair in zip(seen[VISIBILITY], circle, strict=True)]
    middle = r * side + r
    seen[SELF][middle] = f32(me.health / FULL_HEALTH)
    show_others(farm, slot, seen)
    if me.goal >= 0:
        node = farm.state.nodes[me.goal]
        across = min(max(cell(node.x, plan["width"]) - col, -r), r)
        down = min(max(cell(node.y, plan["height"]) - row, -r), r)
        seen[GOAL][middle + down * side + across] = 1.0
    return seen


def show_others(farm: "Farm", slot: int, seen: list[list[float]]) -> None:
    """The health of others by cell, of the healthiest where there are several."""
    me, plan = farm.state.agents[slot], farm.plan
    r, side = plan["radius"], 2 * plan["radius"] + 1
    farm.count("index.queries")
    for other, agent in enumerate(farm.state.agents):
        if other == slot or agent.state != ALIVE:
            continue
        across = cell(agent.x, plan["width"]) - cell(me.x, plan["width"])
        down = cell(agent.y, plan["height"]) - cell(me.y, plan["height"])
        if abs(across) <= r and abs(down) <= r:
            channel = seen[ALLIES if agent.breed == me.breed else ENEMIES]
            at = (down + r) * side + across + r
            channel[at] = max(channel[at], f32(agent.health / FULL_HEALTH))


def body(farm: "Farm", me: Agent) -> list[float]:
    """An agent's own state, where it sees nothing else."""
    return [
        f32(me.health / FULL_HEALTH),
        me.resources,
        f32(me.x / farm.width),
        f32(me.y / farm.height),
        *(float(me.breed == breed) for breed in range(3)),
        float(me.defending > 0),
    ]
