"""The 69 actions, with mining, scanning and pirates; each returns whether it was valid.

What an invalid one has paid stays paid. actions.h, mining.h and pirates.h have the same.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from hotloop.worlds.prospector.numbers import (
    COMMODITIES,
    COMMODITY_NAMES,
    CREDIT_SCALE,
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
    Number,
    Stream,
    clamp,
    exp,
    less,
    log,
    normalised,
    positive,
    power,
    sigmoid,
    sqrt,
    total,
)
from hotloop.worlds.prospector.state import Asteroid

if TYPE_CHECKING:
    from hotloop.worlds.prospector.twin import Prospector


class Scan(NamedTuple):
    """How far a scan moves what the ship believes, and how well it sees."""

    blend: Number
    gain: Number
    spread: Number


class Mining(NamedTuple):
    """A way to mine."""

    yields: Number
    heat: Number
    wear: Number
    alert: Number
    sigma: Number
    bias: Number


# Wide, focused, deep.
SCANS = (
    Scan(F(0.22), F(0.10), F(1.35)),
    Scan(F(0.42), F(0.20), F(1.00)),
    Scan(F(0.80), F(0.45), F(0.55)),
)
# Conservative, standard, aggressive.
MINING = (
    Mining(F(0.80), F(2), F(0.8), F(1.2), F(0.05), F(-0.7)),
    Mining(F(1.15), F(4), F(1.6), F(2.2), F(0.10), F(0)),
    Mining(F(1.55), F(7), F(2.8), F(4.0), F(0.16), F(0.8)),
)


def scan(stream: Stream, asteroid: Asteroid, how: Scan) -> None:
    """Seven normals are drawn: one a commodity, one for the stability."""
    sigma = asteroid.noise * (1 - asteroid.confidence + F(0.1)) * how.spread
    keep = 1 - how.blend
    noisy = normalised([true + stream.normal(0, sigma) for true in asteroid.composition])
    mixed = [keep * old + how.blend * new for old, new in zip(asteroid.estimate, noisy, strict=True)]
    asteroid.estimate = normalised(mixed)
    stability = clamp(asteroid.stability + stream.normal(0, sigma), 0, 1)
    asteroid.estimated_stability = clamp(keep * asteroid.estimated_stability + how.blend * stability, 0, 1)
    asteroid.confidence = clamp(asteroid.confidence + how.gain, 0, 1)


def mine(game: "Prospector", mode: int) -> bool:
    """Mine what is selected; a hot tool works badly, and the asteroid may fracture."""
    ship, asteroid, how = game.ship, game.target, MINING[mode]
    if asteroid is None:
        return False
    toolf, heatf = clamp(ship.tool / FULL, 0, 1), clamp(ship.heat / FULL, 0, 2)
    noise = exp(game.stream.normal(0, how.sigma))
    hot = 1 - (heatf - F(0.7)) / F(0.3)
    efficiency = F(1) if heatf <= F(0.7) else max(F(0.1), hot)
    amount = asteroid.richness * positive(1 - asteroid.depletion) * (F(0.4) + F(0.6) * toolf)
    amount = amount * efficiency * how.yields * noise
    amounts = [amount * part for part in asteroid.composition]
    free, whole = positive(MAX_CARGO - ship.load), total(amounts)
    if whole > free:  # as much of it as fits
        amounts = [amount * (free / whole) for amount in amounts]
    ship.cargo = [have + more for have, more in zip(ship.cargo, amounts, strict=True)]
    ship.heat, ship.tool = ship.heat + how.heat, ship.tool - how.wear
    ship.alert = ship.alert + how.alert
    asteroid.depletion = clamp(asteroid.depletion + F(0.01) * total(amounts), 0, 1)
    ship.mined += 1
    logit = F(-3.1) + how.bias + F(2.5) * (1 - asteroid.stability)
    logit = logit + F(2.2) * positive(heatf - F(0.7)) + F(1.5) * (1 - toolf)
    if ship.buffs[ship.selected] > 0:
        logit = logit - F(1.1)
    if game.stream.unit() < sigmoid(logit):
        ship.hull = ship.hull - 12 * game.stream.uniform(0.5, 1)
        asteroid.depletion = F(1)
        game.node.hazard = clamp(game.node.hazard + F(0.1), 0, 1)
        game.count("fracture")
    game.count("mine")
    return True


def pirates(game: "Prospector", intensity: Number) -> None:
    """They may come for the cargo; never at the station."""
    ship = game.ship
    if game.at_station:
        return
    worth = game.cargo_value
    logit = F(-4) + 3 * intensity + F(2.2) * clamp(ship.alert / FULL, 0, 1)
    logit = logit + F(0.8) * log(1 + worth / CREDIT_SCALE)
    if ship.escape > 0:
        logit = logit - F(2.8)
    chance = 1 - power(1 - sigmoid(logit), max(1, game.dt))
    if not game.stream.unit() < chance:
        return
    ship.encounters += 1
    game.count("pirates")
    loss = game.stream.uniform(0.08, 0.20)
    if ship.decoys > 0 and game.stream.unit() < F(0.6):
        ship.decoys -= 1
        loss = loss * F(0.3)
        game.count("decoy")
    ship.cargo = [amount * (1 - loss) for amount in ship.cargo]
    ship.lost = ship.lost + (worth - game.cargo_value)
    ship.hull = ship.hull - game.stream.uniform(1, 4)
    ship.alert = ship.alert + 8


ACTIONS = 69
HOLD = 6
CASH_OUT = 68
SALE_SHARES = (F(0.25), F(0.5), F(1))
FUEL_OFFERS = ((120, 60), (260, 120), (480, 210))  # Fuel and its price
SUPPLIES = (("kits", 150), ("stabilisers", 175), ("decoys", 110))  # Name and price
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


def survey(game: "Prospector", mode: int) -> bool:
    """Scan all asteroids here, or the selected one alone: focused or deep."""
    ship, target = game.ship, game.target
    game.dt, fuel, alert = ((3, 5, 4), (2, 4, 3), (4, 8, 6))[mode]
    ship.fuel, ship.alert = ship.fuel - fuel, ship.alert + alert
    if mode and target is None:
        return False
    for asteroid in [target] if mode and target else game.node.asteroids:
        scan(game.stream, asteroid, SCANS[mode])
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
    *(Act(survey, mode, f"scan {('wide', 'focused', 'deep')[mode]}") for mode in range(3)),
    Act(listen, 0, "listen"),
    *(Act(select, index, f"select {index}") for index in range(MAX_ASTEROIDS)),
    *(Act(mine, how, f"mine {('gently', 'steadily', 'hard')[how]}") for how in range(3)),
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
