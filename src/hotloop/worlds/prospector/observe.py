"""What a ship shows: its observation, its infos, and a readable line a step.

An observation is 260 float32, of which 66 and 67 are never set; observe.h and metrics.h
must agree to the byte.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hotloop.worlds.prospector.actions import ACTIONS, TABLE
from hotloop.worlds.prospector.numbers import (
    COMMODITIES,
    CREDIT_SCALE,
    FARTHEST,
    FULL,
    ICE,
    IRON,
    ISOTOPES,
    KIND_NAMES,
    MAX_ASTEROIDS,
    MAX_CARGO,
    MAX_FUEL,
    MAX_NODES,
    MAX_SUPPLIES,
    PLATINUM,
    PRICE_BASE,
    SLOTS,
    STATION,
    F,
    Number,
    Real,
    clamp,
    log,
    normalised,
    positive,
)
from hotloop.worlds.prospector.state import Asteroid, Edge, ProspectorState, Ship

OBSERVATIONS = 260
EDGES_AT, EDGE_SIZE = 24, 7
ASTEROIDS_AT, ASTEROID_SIZE = 68, 11
PRICES_AT = 244
CHANGES_AT = 250
INVENTORIES_AT = 256
SHOWN_INVENTORIES = (IRON, ICE, PLATINUM, ISOTOPES)
RICHEST = log(F(1 + 1e7))  # Credits at which their observation is full, as a logarithm

assert EDGES_AT + SLOTS * EDGE_SIZE == 66
assert ASTEROIDS_AT + MAX_ASTEROIDS * ASTEROID_SIZE == PRICES_AT
assert INVENTORIES_AT + len(SHOWN_INVENTORIES) == OBSERVATIONS
assert CREDIT_SCALE == 1000


def share(x: Number, most: Real) -> Number:
    return clamp(x / F(most), 0, 1)


def one_hot(index: int, count: int) -> Iterator[Number]:
    return (F(i == index) for i in range(count))


def ship_row(state: ProspectorState, time_max: int, *, selection_valid: bool) -> Iterator[Number]:
    """Observations 0 to 23."""
    ship, node = state.ship, state.nodes[state.ship.node]
    yield share(ship.fuel, MAX_FUEL)
    yield share(ship.hull, FULL)
    yield share(ship.heat, FULL)
    yield share(ship.tool, FULL)
    yield share(ship.load, MAX_CARGO)
    yield share(ship.alert, FULL)
    yield share(F(ship.time), time_max)
    yield clamp(log(1 + ship.credits) / RICHEST, 0, 1)
    yield from (amount / F(MAX_CARGO) for amount in ship.cargo)
    yield from (F(count) / F(MAX_SUPPLIES) for count in (ship.kits, ship.stabilisers, ship.decoys))
    yield F(node.kind == STATION)
    yield F(selection_valid)
    yield from one_hot(node.kind, 3)
    yield F(ship.node) / F(MAX_NODES - 1)
    yield F(node.steps) / F(FARTHEST)


def edge_row(edge: Edge | None, state: ProspectorState) -> Iterator[Number]:
    """Seven numbers about a way from here; all zero where there is none."""
    if edge is None:
        yield from [F(0)] * EDGE_SIZE
        return
    yield F(1)
    yield from one_hot(state.nodes[edge.to].kind, 3)
    yield F(edge.time) / F(8)
    yield edge.fuel / F(160)
    yield edge.estimate


def asteroid_row(asteroid: Asteroid | None, *, selected: bool) -> Iterator[Number]:
    """Eleven numbers about an asteroid; a depleted one stays present, a fractured one stays selected."""
    if asteroid is None:
        yield from [F(0)] * ASTEROID_SIZE
        return
    yield F(1)
    yield from normalised(asteroid.estimate)
    yield asteroid.estimated_stability
    yield asteroid.depletion
    yield asteroid.confidence
    yield F(selected)


def observation(state: ProspectorState, time_max: int, *, selection_valid: bool) -> Iterator[Number]:
    """All of it, in order."""
    node = state.nodes[state.ship.node]
    yield from ship_row(state, time_max, selection_valid=selection_valid)
    for edge in node.edges:
        yield from edge_row(edge, state)
    yield from (F(0), F(0))
    missing = [None] * (MAX_ASTEROIDS - len(node.asteroids))
    for index, asteroid in enumerate([*node.asteroids, *missing]):
        yield from asteroid_row(asteroid, selected=index == state.ship.selected)
    market = state.market
    for c in range(COMMODITIES):
        yield share(market.price[c], PRICE_BASE[c])
    for c in range(COMMODITIES):
        yield clamp((market.price[c] - market.previous[c]) / F(100), -1, 1)
    for c in SHOWN_INVENTORIES:
        yield share(market.inventory[c], 500)


Metric = Callable[[Ship, bool], Number | int]  # From a ship, and whether it survived, to a float32


def ticks(ship: Ship) -> int:
    return max(1, ship.ticks)


# In the order of metrics.h.
METRICS: Mapping[str, Metric] = {
    "credits": lambda ship, _: ship.credits,
    "net_profit": lambda ship, _: ship.credits - ship.spend,
    "profit_per_tick": lambda ship, _: (ship.credits - ship.spend) / ticks(ship),
    "survival": lambda _, survived: F(survived),
    "overheat_ticks": lambda ship, _: ship.overheated,
    "pirate_encounters": lambda ship, _: ship.encounters,
    "value_lost_to_pirates": lambda ship, _: ship.lost,
    "fuel_used": lambda ship, _: positive(MAX_FUEL - ship.fuel),
    "hull_damage": lambda ship, _: positive(FULL - ship.hull),
    "tool_wear": lambda ship, _: positive(FULL - ship.tool),
    "scan_count": lambda ship, _: ship.scans,
    "mining_ticks": lambda ship, _: ship.mined,
    "cargo_utilization_avg": lambda ship, _: ship.use / ticks(ship),
    "time_remaining": lambda ship, _: ship.time,
}


# Name, place in the observation, maximum.
GAUGES = (
    ("fuel", 0, MAX_FUEL),
    ("hull", 1, FULL),
    ("heat", 2, FULL),
    ("tool", 3, FULL),
    ("cargo", 4, MAX_CARGO),
    ("alert", 5, FULL),
)


class ProspectorNarrator:
    """Tells what a ship did, where it is and how it is."""

    def __init__(self, time_max: int) -> None:
        self.time_max = time_max

    def tell(self, shown: Mapping[str, Any]) -> str:
        row, action = shown["observations"][0], int(shown["actions"][0])
        tick = self.time_max - int(shown["time_remaining"])
        kind = KIND_NAMES[int(row[19:22].argmax())]
        name = TABLE[action].name if 0 <= action < ACTIONS else f"unknown action {action}"
        gauges = "  ".join(f"{gauge} {row[at] * most:4.0f}" for gauge, at, most in GAUGES)
        return (
            f"tick {tick:5}  {name:22}{'(invalid) ' if shown['invalid'] else '':10}"
            f"at {round(float(row[22]) * (MAX_NODES - 1)):2} {kind:8} {gauges}  "
            f"credits {float(shown['credits']):8.1f}  reward {float(shown['rewards'][0]):+9.4f}"
        )
