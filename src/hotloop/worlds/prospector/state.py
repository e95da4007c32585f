"""What an env of the prospector world consists of; state.h has the same in another layout."""

import json
from dataclasses import asdict, dataclass, field
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
    estimate: Number
    """Of the threat, as the ship has it."""


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
    steps: int = FARTHEST
    """To the station."""
    asteroids: list[Asteroid] = field(default_factory=list)
    visited: bool = False
    """The asteroids of a node where the ship has never been follow from the seed alone."""

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
    recent: list[Number] = field(default_factory=nothing)
    """Sold lately."""
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
    lost: Number = NOTHING
    """Value lost to pirates."""
    use: Number = NOTHING
    """Share of the hold in use, summed over ticks."""
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
    buffs: list[int] = field(default_factory=lambda: [0] * MAX_ASTEROIDS)
    """Ticks for which an asteroid of this index is stabilised, at any node."""

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
