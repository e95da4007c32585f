"""What an env of the farm world consists of, and how an episode begins; state.h and reset.h have the same."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil, isqrt
from tempfile import TemporaryFile

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.core.exact_math import Draws, f32
from hotloop.core.world import Plan

# A slot's states; who dies keeps the slot until the environment has been updated.
FREE, ALIVE, DYING = range(3)

BREEDS = 3
FULL_HEALTH = 100.0

KNOWN, DAMAGE, TRAIL, SIGNAL = range(4)
# The fields that decay; a signal is heard by those of one type, so each type has a field.
FIELDS = SIGNAL + BREEDS
DECAY = tuple(map(f32, (0.98, 0.85, 0.90, 0.92, 0.92, 0.92)))
FAINT = f32(1 / 256)  # Below this a field is nothing
BLOCK = 8  # Cells of a side of what has one terrain
LANES = 8  # Random numbers an agent has in a step
LANE_WAY, LANE_CHANCE, LANE_X, LANE_Y, LANE_LUCK = range(5)
LANE_NODES = 1 << 32
LANE_TERRAIN = 1 << 33


@dataclass(slots=True)
class FarmAgent:
    """A slot of the population."""

    state: int = FREE
    breed: int = 0
    x: float = 0.0
    y: float = 0.0
    to_x: float = 0.0
    to_y: float = 0.0  # Where it will be when the environment is updated
    resources: float = 0.0
    health: float = 0.0
    total: float = 0.0  # Reward so far
    goal: int = -1  # The node it gathered from last
    serial: int = 0
    parent: int = -1  # Its serial; -1 is none
    generation: int = 0
    age: int = 0
    defending: int = 0
    hunger: int = 0


@dataclass(slots=True)
class FoodNode:
    """A place where resources grow."""

    x: float
    y: float
    amount: float


class Mapped:
    """A file that has what grows: the food that agents see, by cell, and what each node holds."""

    def __init__(self, folder: str, cells: int, nodes: int) -> None:
        """The file has no name, so that nothing is left behind; InputError where it cannot be made."""
        size = (cells + nodes) * 4
        try:
            with TemporaryFile(dir=folder) as file:
                os.posix_fallocate(file.fileno(), 0, max(size, 4))
                numbers: NDArray[np.float32] = np.memmap(file, np.float32, "r+")
        except OSError as error:
            raise InputError(
                f"no file of {size} bytes can be mapped in {folder}: {error.strerror}; give memmap_folder=DIR"
            ) from None
        self.food, self.amounts = numbers[:cells], numbers[cells : cells + nodes]

    def keep(self, nodes: "list[FoodNode]") -> "list[FoodNode]":
        """The same nodes, with what they hold in the file."""
        return [MappedNode(self, k, node) for k, node in enumerate(nodes)]


class MappedNode(FoodNode):
    """A node whose amount is kept in a file."""

    def __init__(self, mapped: Mapped, k: int, node: FoodNode) -> None:
        self.mapped, self.k, self.x, self.y = mapped, k, node.x, node.y
        mapped.amounts[k] = node.amount

    @property
    def amount(self) -> float:
        return float(self.mapped.amounts[self.k])

    @amount.setter
    def amount(self, held: float) -> None:
        self.mapped.amounts[self.k] = held


@dataclass(slots=True)
class FarmState:
    """Everything that a step can change."""

    episode_seed: int = 0
    tick: int = 0
    serials: int = 0  # Agents there ever were in this episode; the next one's number
    births: int = 0
    starved: int = 0
    killed: int = 0
    lived: int = 0  # Agent-steps of this episode
    agents: list[FarmAgent] = field(default_factory=list)
    nodes: list[FoodNode] = field(default_factory=list)
    # Cell to value; a cell that is not there is 0.
    fields: list[dict[int, float]] = field(default_factory=list)


def uniform(word: int) -> float:
    """24 bits of a random word as a number from 0 to below 1."""
    return (word >> 40) / 2**24


def cell(at: float, cells: int) -> int:
    """The cell of a coordinate; the far border belongs to the last one."""
    return min(int(at), cells - 1)


CLUSTER = 5  # Nodes of a cluster
CLUSTER_SIZE = 5.0  # How far from its middle a node is at most, in each direction


def begin(plan: Plan, episode_seed: int) -> FarmState:
    """A new episode's state."""
    draws = Draws(episode_seed, 0)
    state = FarmState(episode_seed=episode_seed)
    cap = f32(plan["node_cap"])
    state.nodes = [FoodNode(x, y, cap) for x, y in places(plan, draws)]
    state.fields = [{} for _ in range(FIELDS)]
    state.agents = [FarmAgent() for _ in range(plan["agents"])]
    for slot in range(plan["settlers"]):
        settle(plan, state, slot, draws, slot % BREEDS)
    return state


def settle(plan: Plan, state: FarmState, slot: int, draws: Draws, breed: int) -> None:
    """Put a new agent without parents anywhere."""
    x = f32(uniform(draws.word(slot * LANES + LANE_X)) * plan["width"])
    y = f32(uniform(draws.word(slot * LANES + LANE_Y)) * plan["height"])
    state.agents[slot] = FarmAgent(
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
    """Where the nodes are: anywhere, in a regular pattern row by row, or in clusters."""
    columns = isqrt(max(plan["nodes"], 1) - 1) + 1
    rows = ceil(plan["nodes"] / columns)
    for node in range(plan["nodes"]):
        across, down = (uniform(draws.word(LANE_NODES + 2 * node + axis)) for axis in range(2))
        if plan["placement"] == "random":
            yield f32(across * plan["width"]), f32(down * plan["height"])
        elif plan["placement"] == "grid":
            x = f32(f32(node % columns + 0.5) * f32(plan["width"] / columns))
            yield x, f32(f32(node // columns + 0.5) * f32(plan["height"] / rows))
        else:
            yield clustered(plan, draws, node, across, down)


def clustered(plan: Plan, draws: Draws, node: int, across: float, down: float) -> tuple[float, float]:
    """Near the middle of the node's cluster, and within the world."""
    middle = LANE_NODES + 2 * (plan["nodes"] + node // CLUSTER)
    x = f32(uniform(draws.word(middle)) * plan["width"])
    y = f32(uniform(draws.word(middle + 1)) * plan["height"])
    x = f32(x + f32(f32(across - 0.5) * (2 * CLUSTER_SIZE)))
    y = f32(y + f32(f32(down - 0.5) * (2 * CLUSTER_SIZE)))
    return min(max(x, 0.0), float(plan["width"])), min(max(y, 0.0), float(plan["height"]))
