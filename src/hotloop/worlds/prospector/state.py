"""What an env of the prospector world consists of, its words to hash, and how an episode begins.

state.h, digest.h and reset.h have the same.
"""

import json
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from hotloop.worlds.prospector.numbers import (
    CLUSTER,
    COMMODITIES,
    FARTHEST,
    FULL,
    HAZARD,
    MAX_ASTEROIDS,
    MAX_FUEL,
    NOTHING,
    PRICE_BASE,
    PRICE_MAX,
    PRICE_MIN,
    SLOTS,
    STATION,
    F,
    Number,
    Stream,
    clamp,
    sin,
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
class SpaceNode:
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
class ProspectorState:
    """Everything that a step can change, and the graph."""

    ship: Ship
    market: Market
    nodes: list[SpaceNode]

    def freeze(self) -> str:
        return json.dumps(asdict(self), default=float)

    @classmethod
    def thaw(cls, frozen: str) -> Self:
        """Every number with a point in it is a float32."""
        row = json.loads(frozen, parse_float=F)
        nodes = [SpaceNode.thaw(node) for node in row["nodes"]]
        return cls(ship=Ship(**row["ship"]), market=Market(**row["market"]), nodes=nodes)


FLOATS = ("fuel", "hull", "heat", "tool", "alert", "credits", "spend", "lost", "use")
WHOLES = (
    *("time", "ticks", "node", "selected", "kits", "stabilisers", "decoys"),
    *("escape", "overheated", "encounters", "scans", "mined"),
)


def words(state: ProspectorState) -> Iterator[int]:
    ship = state.ship
    yield from words_of(*(getattr(ship, name) for name in FLOATS), *ship.cargo)
    yield from (getattr(ship, name) for name in WHOLES)
    yield from struct.unpack("<2Q", bytes(ship.buffs))
    for row in fields(state.market):
        yield from words_of(*getattr(state.market, row.name))
    yield len(state.nodes)
    for node in state.nodes:
        yield from node_words(node)


def node_words(node: SpaceNode) -> Iterator[int]:
    """A node's state; its asteroids only where they can have changed."""
    yield node.kind << 16 | node.steps << 8 | len(node.asteroids)
    yield from words_of(node.hazard, node.pirate)
    for edge in filter(None, node.edges):
        yield edge.to << 8 | edge.time
        yield from words_of(edge.fuel, edge.threat)
        yield from words_of(edge.estimate)
    for asteroid in node.asteroids if node.visited else ():
        yield from words_of(
            *asteroid.composition,
            *(asteroid.richness, asteroid.stability, asteroid.noise),
            *asteroid.estimate,
            *(asteroid.estimated_stability, asteroid.confidence, asteroid.depletion),
        )


def words_of(*numbers: Number) -> Iterator[int]:
    """Two float32 a word; an odd one is followed by a zero."""
    padded = (*numbers, *[0.0] * (len(numbers) % 2))
    return iter(struct.unpack(f"<{len(padded) // 2}Q", struct.pack(f"<{len(padded)}f", *padded)))


def begin(stream: Stream, time_max: int) -> ProspectorState:
    """Draw a world in a fixed order: the graph, the asteroids and the market."""
    nodes = draw_nodes(stream)
    # A tree, then as many ways more as there are nodes, where they fit.
    for i in range(1, len(nodes)):
        connect(stream, nodes, i, stream.between(0, i))
    for _ in nodes:
        u, v = stream.between(0, len(nodes)), stream.between(0, len(nodes))
        if u != v:
            connect(stream, nodes, u, v)
    # How far each node is from the station, breadth first.
    nodes[0].steps = 0
    reached = [nodes[0]]
    for node in reached:
        for edge in node.edges:
            if edge and edge.to != 0 and nodes[edge.to].steps == FARTHEST:
                nodes[edge.to].steps = node.steps + 1
                reached.append(nodes[edge.to])
    for node in nodes[1:]:
        node.asteroids = [draw_asteroid(stream) for _ in range(stream.between(5, 17))]
    nodes[0].visited = True
    return ProspectorState(ship=Ship(time=time_max), market=draw_market(stream), nodes=nodes)


def draw_nodes(stream: Stream) -> list[SpaceNode]:
    count = stream.between(8, 33)
    nodes = [SpaceNode(kind=STATION, hazard=F(0), pirate=F(0))]
    for _ in range(1, count):
        dangerous = stream.unit() < F(0.25)
        hazard, pirate = stream.uniform(0.05, 0.35), stream.uniform(0.05, 0.30)
        if dangerous:
            hazard, pirate = hazard + F(0.25), pirate + F(0.12)
        nodes.append(SpaceNode(kind=HAZARD if dangerous else CLUSTER, hazard=hazard, pirate=pirate))
    return nodes


def connect(stream: Stream, nodes: list[SpaceNode], u: int, v: int) -> None:
    """Nothing is drawn where there is a way already or no slot is free."""
    one, other = nodes[u], nodes[v]
    exists = any(edge and edge.to == v for edge in one.edges)
    if exists or None not in one.edges or None not in other.edges:
        return
    time, fuel = stream.between(1, 9), stream.uniform(20, 112)
    dangers = F(0.5) * (one.hazard + other.hazard) + F(0.5) * (one.pirate + other.pirate)
    threat = clamp(dangers + stream.normal(0, 0.05), 0, 1)
    for node, to in ((one, v), (other, u)):
        node.edges[node.edges.index(None)] = Edge(to=to, time=time, fuel=fuel, threat=threat, estimate=F(0.5))


def draw_asteroid(stream: Stream) -> Asteroid:
    """Twenty draws."""
    composition = stream.dirichlet()
    richness = clamp(stream.lognormal(-0.2, 0.65), 0.2, 4)
    stability = stream.beta32()
    noise = stream.uniform(0.04, 0.22)
    return Asteroid(
        composition=composition,
        richness=richness,
        stability=stability,
        noise=noise,
        estimate=stream.dirichlet(),
        estimated_stability=F(0.5),
        confidence=F(0.1),
        depletion=F(0),
    )


def draw_market(stream: Stream) -> Market:
    market = Market()
    for c in range(COMMODITIES):
        market.inventory[c] = stream.uniform(20, 120)
        market.phase[c] = stream.uniform(0, 6.2831853)
        market.period[c] = stream.uniform(180, 380)
        market.amplitude[c] = PRICE_BASE[c] * stream.uniform(0.10, 0.30)
        price = PRICE_BASE[c] + market.amplitude[c] * sin(market.phase[c])
        market.price[c] = market.previous[c] = clamp(price, PRICE_MIN[c], PRICE_MAX[c])
    return market
