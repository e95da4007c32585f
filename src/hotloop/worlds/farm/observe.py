"""What agents see, thirteen channels around them or their own state, and what people see.

observe.h and picture.h have the same.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.exact_math import f32
from hotloop.worlds.farm.state import (
    ALIVE,
    BREEDS,
    DAMAGE,
    FULL_HEALTH,
    KNOWN,
    SIGNAL,
    TRAIL,
    FarmAgent,
    FoodNode,
    cell,
)

if TYPE_CHECKING:
    from hotloop.worlds.farm.twin import Farm

LANDMARKS = 25  # Cells from one landmark to the next

SELF, ALLIES, ENEMIES, FOOD, OBSTACLES, TERRAIN, VISIBILITY = range(7)
KNOWN_EMPTY, HEAT, TRAILS, ALLY_SIGNAL, GOAL, LANDMARK = range(7, 13)
SIGNALS = 13

Plane = NDArray[Any]
Standing = tuple[int, int, float, int, int]


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


def dense(farm: "Farm", values: dict[int, float]) -> Plane:
    """Every cell's value, the margin's included, [rows, columns]."""
    cells = np.zeros(farm.stride * (farm.plan["height"] + 2 * farm.plan["radius"]), np.float32)
    cells[np.fromiter(values, np.int64, len(values))] = list(values.values())
    return cells.reshape(-1, farm.stride)


def shown_food(farm: "Farm") -> Plane:
    """What nodes hold by cell, as it is looked at: from the file, where it is kept in one."""
    plane = dense(farm, food(farm))
    if farm.mapped is None:
        return plane
    farm.mapped.food[:] = plane.ravel()
    return farm.mapped.food.reshape(plane.shape)


class Still:
    """What of the world never changes: where it ends, its landmarks, and how far agents see."""

    def __init__(self, farm: "Farm") -> None:
        inside = [
            (farm.cell_at(col, row), col, row)
            for row in range(farm.plan["height"])
            for col in range(farm.plan["width"])
        ]
        marked = {at for at, col, row in inside if col % LANDMARKS == 0 and row % LANDMARKS == 0}
        self.inside = dense(farm, {at: 1.0 for at, _, _ in inside})
        self.outside = 1 - self.inside
        self.landmarks = dense(farm, dict.fromkeys(marked, 1.0))
        r = farm.plan["radius"]
        span = range(-r, r + 1)
        self.circle = np.array([[x * x + y * y <= r * r for x in span] for y in span], np.float32)


def planes(farm: "Farm", still: Still) -> dict[int, Plane]:
    """Whole channels, of which agents see windows; signals are kept by type, beyond the channels."""
    fields = [dense(farm, values) for values in farm.state.fields]
    return {
        FOOD: shown_food(farm),
        OBSTACLES: still.outside,
        TERRAIN: dense(farm, farm.terrain),
        VISIBILITY: still.inside,
        KNOWN_EMPTY: fields[KNOWN],
        HEAT: fields[DAMAGE],
        TRAILS: fields[TRAIL],
        LANDMARK: still.landmarks,
        **{SIGNALS + breed: fields[SIGNAL + breed] for breed in range(BREEDS)},
    }


def look(farm: "Farm", slot: int, shown: dict[int, Plane], standing: list[Standing], seen: Plane) -> None:
    """Write one agent's channels, [channel, row, column]."""
    me, plan = farm.state.agents[slot], farm.plan
    r, side = plan["radius"], 2 * plan["radius"] + 1
    col, row = place(farm, me)
    seen[...] = 0
    for channel, values in shown.items():
        if channel < SIGNALS or channel == SIGNALS + me.breed:
            window = values[row : row + side, col : col + side]
            seen[channel if channel < SIGNALS else ALLY_SIGNAL] = window
    np.minimum(seen[VISIBILITY], farm.still.circle, out=seen[VISIBILITY])
    seen[SELF, r, r] = f32(me.health / FULL_HEALTH)
    farm.count("index.queries")
    for other, breed, health, x, y in standing:
        if other != slot and abs(x - col) <= r and abs(y - row) <= r:
            at = ALLIES if breed == me.breed else ENEMIES, y - row + r, x - col + r
            seen[at] = max(seen[at], health)
    if me.goal >= 0:
        x, y = place(farm, farm.state.nodes[me.goal])
        seen[GOAL, min(max(y - row, -r), r) + r, min(max(x - col, -r), r) + r] = 1.0


def standing(farm: "Farm") -> list[Standing]:
    """Where everybody stands: slot, type, the share of its health, column and row."""
    each = ((slot, agent, place(farm, agent)) for slot, agent in farm.living())
    return [(slot, agent.breed, f32(agent.health / FULL_HEALTH), x, y) for slot, agent, (x, y) in each]


def place(farm: "Farm", thing: FarmAgent | FoodNode) -> tuple[int, int]:
    """The column and row of a cell."""
    return cell(thing.x, farm.plan["width"]), cell(thing.y, farm.plan["height"])


def body(farm: "Farm", me: FarmAgent) -> list[float]:
    """An agent's own state, where it sees nothing else."""
    return [
        f32(me.health / FULL_HEALTH),
        me.resources,
        f32(me.x / farm.width),
        f32(me.y / farm.height),
        *(float(me.breed == breed) for breed in range(3)),
        float(me.defending > 0),
    ]


def picture(farm: "Farm") -> NDArray[np.uint8]:
    """Who stands where, what grows there, and who went by."""
    width, height = farm.plan["width"], farm.plan["height"]
    cells = np.zeros((height, width, 4), np.uint8)
    for row in range(height):
        for col in range(width):
            fresh = farm.state.fields[TRAIL].get(farm.cell_at(col, row), 0.0)
            cells[row, col, 3] = int(fresh * 255.0)
    for node in farm.state.nodes:
        share = node.amount / farm.node_cap
        cells[cell(node.y, height), cell(node.x, width), 2] = int(share * 255.0)
    for agent in farm.state.agents:
        if agent.state == ALIVE:
            at = cells[cell(agent.y, height), cell(agent.x, width)]
            at[0], at[1] = agent.breed + 1, int(agent.health)
    return cells


GROUND = (38, 44, 36)
BREED_COLOURS = ((90, 170, 255), (255, 190, 70), (240, 100, 160))  # System, independent, control
SCALE = 6
LETTERS = "SIC"
MOST_COLUMNS = 100  # Of text; a wider world is drawn with several cells a letter


class FarmDrawer:
    """Draws agents by type, food in green and tracks in grey."""

    def image(self, cells: NDArray[np.uint8]) -> NDArray[np.uint8]:
        drawn = np.empty((*cells.shape[:2], 3), np.uint8)
        drawn[...] = GROUND
        drawn += (cells[..., 3:4] // 4).astype(np.uint8)
        grown = cells[..., 2] > 0
        drawn[grown, 1] = 80 + cells[..., 2][grown] // 2
        for breed, colour in enumerate(BREED_COLOURS):
            drawn[cells[..., 0] == breed + 1] = colour
        return drawn.repeat(SCALE, axis=0).repeat(SCALE, axis=1)

    def text(self, cells: NDArray[np.uint8]) -> str:
        step = -(-cells.shape[1] // MOST_COLUMNS)
        rows = range(0, cells.shape[0], 2 * step)
        columns = range(0, cells.shape[1], step)
        return "\n".join(
            "".join(self._letter(cells[row : row + 2 * step, col : col + step]) for col in columns)
            for row in rows
        )

    def _letter(self, cells: Any) -> str:
        """What matters most of a few cells: an agent, then food, then a track."""
        breed = int(cells[..., 0].max())
        if breed:
            red, green, blue = BREED_COLOURS[breed - 1]
            return f"\x1b[38;2;{red};{green};{blue}m{LETTERS[breed - 1]}\x1b[0m"
        if cells[..., 2].max():
            return "\x1b[32m*\x1b[0m"
        return "\x1b[90m.\x1b[0m" if cells[..., 3].max() > 64 else " "
