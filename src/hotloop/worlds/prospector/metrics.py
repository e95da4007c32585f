"""The infos of the frozen interface, each declared once: its name and how it is worked out of a ship."""

from collections.abc import Callable, Mapping

from hotloop.worlds.prospector.numbers import FULL, MAX_FUEL, F, Number, positive
from hotloop.worlds.prospector.state import Ship

Metric = Callable[[Ship, bool], Number | int]
"""From a ship, and whether it survived, to a float32."""


def ticks(ship: Ship) -> int:
    return max(1, ship.ticks)


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
"""In the order of metrics.h."""
