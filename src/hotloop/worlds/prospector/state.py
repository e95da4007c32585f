"""What an env of the prospector world consists of, and its words to hash; as state.h and digest.h."""

import json
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from hotloop.worlds.prospector.numbers import (
    COMMODITIES,
    FARTHEST,
    FULL,
    MAX_ASTEROIDS,
    MAX_FUEL,
    NOTHING,
    SLOTS,
    F,
    Number,
    total,
)

FULL_TANK, WHOLE = F(MAX_FUEL), F(FULL)


def nothing() -> list[Number]:
    """Nothing of every commodity."""
    return [NOTHING] * COMMODITIES


@dataclass(slots=True, kw_only=True)
class Edge:
    """One end of a way between two nodes."""

    to: int
    time: int
    fuel: Number
    threat: Number
    estimate: Number  # Of the threat, as the ship has it


@dataclass(slots=True, kw_only=True)
class Asteroid:
    """The truth about it, and what the ship believes."""

    composition: list[Number]
    richness: Number
    stability: Number
    noise: Number
    estimate: list[Number]
    estimated_stability: Number
    confidence: Number
    depletion: Number


@dataclass(slots=True, kw_only=True)
class Node:
    """A place."""

    kind: int
    hazard: Number
    pirate: Number
    edges: list[Edge | None] = field(default_factory=lambda: [None] * SLOTS)
    steps: int = FARTHEST  # To the station
    asteroids: list[Asteroid] = field(default_factory=list)
    visited: bool = False  # The asteroids of a node where the ship has never been follow from the seed alone

    @classmethod
    def thaw(cls, row: dict[str, Any]) -> Self:
        row["edges"] = [Edge(**edge) if edge else None for edge in row["edges"]]
        row["asteroids"] = [Asteroid(**asteroid) for asteroid in row["asteroids"]]
        return cls(**row)


@dataclass(slots=True, kw_only=True)
class Market:
    """One number a commodity each."""

    price: list[Number] = field(default_factory=nothing)
    previous: list[Number] = field(default_factory=nothing)
    inventory: list[Number] = field(default_factory=nothing)
    recent: list[Number] = field(default_factory=nothing)  # Sold lately
    amplitude: list[Number] = field(default_factory=nothing)
    phase: list[Number] = field(default_factory=nothing)
    period: list[Number] = field(default_factory=nothing)


@dataclass(slots=True, kw_only=True)
class Ship:
    """The ship, its hold, its account and what it has lived through."""

    fuel: Number = FULL_TANK
    hull: Number = WHOLE
    heat: Number = NOTHING
    tool: Number = WHOLE
    alert: Number = NOTHING
    credits: Number = NOTHING
    spend: Number = NOTHING
    lost: Number = NOTHING  # Value lost to pirates
    use: Number = NOTHING  # Share of the hold in use, summed over ticks
    cargo: list[Number] = field(default_factory=nothing)
    time: int = 0
    ticks: int = 0
    node: int = 0
    selected: int = -1
    kits: int = 3
    stabilisers: int = 2
    decoys: int = 1
    escape: int = 0
    overheated: int = 0
    encounters: int = 0
    scans: int = 0
    mined: int = 0
    # Ticks for which an asteroid of this index is stabilised, at any node.
    buffs: list[int] = field(default_factory=lambda: [0] * MAX_ASTEROIDS)

    @property
    def load(self) -> Number:
        return total(self.cargo)


@dataclass(slots=True, kw_only=True)
class State:
    """Everything that a step can change, and the graph."""

    ship: Ship
    market: Market
    nodes: list[Node]

    def freeze(self) -> str:
        return json.dumps(asdict(self), default=float)

    @classmethod
    def thaw(cls, frozen: str) -> Self:
        """Every number with a point in it is a float32."""
        row = json.loads(frozen, parse_float=F)
        nodes = [Node.thaw(node) for node in row["nodes"]]
        return cls(ship=Ship(**row["ship"]), market=Market(**row["market"]), nodes=nodes)


FLOATS = ("fuel", "hull", "heat", "tool", "alert", "credits", "spend", "lost", "use")
WHOLES = (
    *("time", "ticks", "node", "selected", "kits", "stabilisers", "decoys"),
    *("escape", "overheated", "encounters", "scans", "mined"),
)


def words(state: State) -> Iterator[int]:
    ship = state.ship
    yield from words_of(*(getattr(ship, name) for name in FLOATS), *ship.cargo)
    yield from (getattr(ship, name) for name in WHOLES)
    yield from struct.unpack("<2Q", bytes(ship.buffs))
    for row in fields(state.market):
        yield from words_of(*getattr(state.market, row.name))
    yield len(state.nodes)
    for node in state.nodes:
        yield from node_words(node)


def node_words(node: Node) -> Iterator[int]:
    """A node's state; its asteroids only where they can have changed."""
    yield node.kind << 16 | node.steps << 8 | len(node.asteroids)
    yield from words_of(node.hazard, node.pirate)
    for edge in node.edges:
        if edge:
            yield from edge_words(edge)
    for asteroid in node.asteroids if node.visited else ():
        yield from asteroid_words(asteroid)


def edge_words(edge: Edge) -> Iterator[int]:
    yield edge.to << 8 | edge.time
    yield from words_of(edge.fuel, edge.threat)
    yield from words_of(edge.estimate)


def asteroid_words(asteroid: Asteroid) -> Iterator[int]:
    return words_of(
        *asteroid.composition,
        *(asteroid.richness, asteroid.stability, asteroid.noise),
        *asteroid.estimate,
        *(asteroid.estimated_stability, asteroid.confidence, asteroid.depletion),
    )


def words_of(*numbers: Number) -> Iterator[int]:
    """Two float32 a word; an odd one is followed by a zero."""
    padded = (*numbers, *[0.0] * (len(numbers) % 2))
    return iter(struct.unpack(f"<{len(padded) // 2}Q", struct.pack(f"<{len(padded)}f", *padded)))
