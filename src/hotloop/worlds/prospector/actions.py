"""The 69 actions; each returns whether it was valid. What an invalid one has paid stays paid."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from hotloop.worlds.prospector.mining import MINING, SCANS, mine, scan
from hotloop.worlds.prospector.numbers import (
    COMMODITIES,
    COMMODITY_NAMES,
    FULL,
    IRON,
    ISOTOPES,
    MAX_ASTEROIDS,
    MAX_CARGO,
    MAX_FUEL,
    MAX_SUPPLIES,
    NICKEL,
    SLOTS,
    F,
    clamp,
    less,
    positive,
    sqrt,
)
from hotloop.worlds.prospector.pirates import pirates

if TYPE_CHECKING:
    from hotloop.worlds.prospector.twin import Prospector

ACTIONS = 69
HOLD = 6
CASH_OUT = 68
SALE_SHARES = (F(0.25), F(0.5), F(1))
FUEL_OFFERS = ((120, 60), (260, 120), (480, 210))
"""Fuel and its price."""
SUPPLIES = (("kits", 150), ("stabilisers", 175), ("decoys", 110))
"""Name and price."""
OVERHAUL_PRICE = 280


def travel(game: "Prospector", slot: int) -> bool:
    ship, edge = game.ship, game.node.edges[slot]
    if edge is None:
        return False
    game.dt = edge.time
    ship.fuel = ship.fuel - edge.fuel * (1 + F(0.5) * ship.load / F(MAX_CARGO))
    ship.node, ship.selected = edge.to, -1
    game.node.visited = True
    ship.hull = ship.hull - game.dt * edge.threat * F(0.7) * game.stream.uniform(0.85, 1.15)
    ship.heat = ship.heat + game.dt * edge.threat * F(0.5)
    ship.alert = ship.alert + game.dt * edge.threat * F(0.8)
    pirates(game, edge.threat)
    game.count("travel")
    return True


def hold(game: "Prospector", _: int = 0) -> bool:
    ship = game.ship
    ship.alert = positive(ship.alert - 3)
    ship.heat = positive(ship.heat - F(2.5))
    return True


def burn(game: "Prospector", _: int) -> bool:
    ship = game.ship
    ship.fuel, ship.alert = ship.fuel - 18, ship.alert + 10
    ship.escape = max(ship.escape, 4)
    return True


def scan_wide(game: "Prospector", _: int) -> bool:
    ship = game.ship
    game.dt = 3
    ship.fuel, ship.alert = ship.fuel - 5, ship.alert + 4
    for asteroid in game.node.asteroids:
        scan(game.stream, asteroid, SCANS[0])
    ship.scans += 1
    game.count("scan")
    return True


def scan_one(game: "Prospector", mode: int) -> bool:
    """Focused or deep."""
    ship, target = game.ship, game.target
    game.dt, fuel, alert = (2, 4, 3) if mode == 1 else (4, 8, 6)
    ship.fuel, ship.alert = ship.fuel - fuel, ship.alert + alert
    if target is None:
        return False
    scan(game.stream, target, SCANS[mode])
    ship.scans += 1
    game.count("scan")
    return True


def listen(game: "Prospector", _: int) -> bool:
    game.dt = 2
    for edge in game.node.edges:
        if edge:
            heard = clamp(edge.threat + game.stream.normal(0, 0.08), 0, 1)
            edge.estimate = F(0.25) * edge.estimate + F(0.75) * heard
    return True


def select(game: "Prospector", index: int) -> bool:
    asteroids = game.node.asteroids
    if index >= len(asteroids) or not asteroids[index].depletion < 1:
        return False
    game.ship.selected = index
    return True


def dig(game: "Prospector", how: int) -> bool:
    if game.target is None:
        return False
    mine(game, game.target, MINING[how])
    game.count("mine")
    return True


def stabilise(game: "Prospector", _: int) -> bool:
    ship = game.ship
    if game.target is None or ship.stabilisers == 0:
        return False
    game.dt = 2
    ship.stabilisers -= 1
    ship.buffs[ship.selected] = 6
    game.count("stabilise")
    return True


def refine(game: "Prospector", _: int) -> bool:
    ship, cargo = game.ship, game.ship.cargo
    game.dt = 2
    ship.fuel, ship.heat, ship.alert = ship.fuel - 4, ship.heat + 6, ship.alert + 3
    low = cargo[IRON] + cargo[NICKEL]
    if low > 0:
        used = F(0.15) * low
        left = 1 - less(used / low, 1)
        cargo[IRON], cargo[NICKEL] = cargo[IRON] * left, cargo[NICKEL] * left
        cargo[ISOTOPES] = cargo[ISOTOPES] + F(0.65) * used
    return True


def cool_down(game: "Prospector", _: int) -> bool:
    ship = game.ship
    game.dt = 2
    ship.fuel, ship.alert = ship.fuel - 2, ship.alert + 1
    ship.heat = positive(ship.heat - 20)
    return True


def repair(game: "Prospector", hull: int) -> bool:
    ship = game.ship
    if ship.kits == 0:
        return False
    game.dt = 2
    ship.kits -= 1
    if hull:
        ship.hull = less(ship.hull + 20, FULL)
    else:
        ship.tool = less(ship.tool + 25, FULL)
    return True


def jettison(game: "Prospector", commodity: int) -> bool:
    game.ship.cargo[commodity] = F(0)
    game.ship.alert = positive(game.ship.alert - 8)
    return True


def dock(game: "Prospector", _: int) -> bool:
    if not game.at_station:
        return False
    game.ship.alert = positive(game.ship.alert - 20)
    return True


def sell(game: "Prospector", which: int) -> bool:
    """A quarter, half or all of a commodity; a large sale into a small market slips."""
    if not game.at_station:
        return False
    c, market, ship = which // 3, game.state.market, game.ship
    quantity = ship.cargo[c] * SALE_SHARES[which % 3]
    if quantity > 0:
        stock = market.inventory[c] + quantity
        r = quantity / (stock if stock > 1 else F(1))
        slip = clamp(F(0.25) * r + F(0.2) * sqrt(r), 0, F(0.7))
        ship.credits = ship.credits + quantity * market.price[c] * (1 - slip)
        ship.cargo[c] = positive(ship.cargo[c] - quantity)
        market.inventory[c] = stock
        market.recent[c] = market.recent[c] + quantity
        game.count("sell")
    return True


def pay(game: "Prospector", price: int) -> bool:
    """Pay at the station, if there is enough."""
    ship = game.ship
    if not game.at_station or ship.credits < price:
        return False
    ship.credits, ship.spend = ship.credits - price, ship.spend + price
    game.count("buy")
    return True


def buy_fuel(game: "Prospector", offer: int) -> bool:
    fuel, price = FUEL_OFFERS[offer]
    if not pay(game, price):
        return False
    game.ship.fuel = less(game.ship.fuel + fuel, MAX_FUEL)
    return True


def buy_supply(game: "Prospector", which: int) -> bool:
    name, price = SUPPLIES[which]
    held = getattr(game.ship, name)
    if held >= MAX_SUPPLIES or not pay(game, price):
        return False
    setattr(game.ship, name, held + 1)
    return True


def overhaul(game: "Prospector", _: int) -> bool:
    if not pay(game, OVERHAUL_PRICE):
        return False
    game.dt = 3
    game.ship.hull = game.ship.tool = F(FULL)
    return True


def cash_out(game: "Prospector", _: int) -> bool:
    game.cashed_out = True
    game.count("cash_out")
    return True


class Act(NamedTuple):
    """An action: what it does, with which argument, and its name for people."""

    run: Callable[["Prospector", int], bool]
    argument: int
    name: str


TABLE = (
    *(Act(travel, slot, f"travel {slot}") for slot in range(SLOTS)),
    Act(hold, 0, "hold"),
    Act(burn, 0, "burn"),
    Act(scan_wide, 0, "scan wide"),
    Act(scan_one, 1, "scan focused"),
    Act(scan_one, 2, "scan deep"),
    Act(listen, 0, "listen"),
    *(Act(select, index, f"select {index}") for index in range(MAX_ASTEROIDS)),
    *(Act(dig, how, f"mine {('gently', 'steadily', 'hard')[how]}") for how in range(3)),
    Act(stabilise, 0, "stabilise"),
    Act(refine, 0, "refine"),
    Act(cool_down, 0, "cool down"),
    Act(repair, 0, "repair tool"),
    Act(repair, 1, "repair hull"),
    *(Act(jettison, c, f"jettison {COMMODITY_NAMES[c]}") for c in range(COMMODITIES)),
    Act(dock, 0, "dock"),
    *(
        Act(sell, 3 * c + part, f"sell {('25%', '50%', 'all')[part]} {COMMODITY_NAMES[c]}")
        for c in range(COMMODITIES)
        for part in range(3)
    ),
    *(Act(buy_fuel, offer, f"buy {FUEL_OFFERS[offer][0]} fuel") for offer in range(3)),
    *(Act(buy_supply, which, f"buy a {SUPPLIES[which][0].removesuffix('s')}") for which in range(3)),
    Act(overhaul, 0, "overhaul"),
    Act(cash_out, 0, "cash out"),
)
assert len(TABLE) == ACTIONS
assert TABLE[HOLD].run is hold
assert TABLE[CASH_OUT].run is cash_out
