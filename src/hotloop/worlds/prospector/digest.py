"""The words of an env's logical state, in an order that digest.h has too; a hash of them is its digest."""

import struct
from collections.abc import Iterator
from dataclasses import fields

from hotloop.worlds.prospector.numbers import Number
from hotloop.worlds.prospector.state import Asteroid, Edge, Node, State

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
