"""Mining and scanning one asteroid."""

from typing import TYPE_CHECKING, NamedTuple

from hotloop.worlds.prospector.numbers import (
    FULL,
    MAX_CARGO,
    F,
    Number,
    clamp,
    exp,
    normalised,
    positive,
    sigmoid,
    total,
)
from hotloop.worlds.prospector.state import Asteroid
from hotloop.worlds.prospector.stream import Stream

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


SCANS = (
    Scan(F(0.22), F(0.10), F(1.35)),
    Scan(F(0.42), F(0.20), F(1.00)),
    Scan(F(0.80), F(0.45), F(0.55)),
)
"""Wide, focused, deep."""
MINING = (
    Mining(F(0.80), F(2), F(0.8), F(1.2), F(0.05), F(-0.7)),
    Mining(F(1.15), F(4), F(1.6), F(2.2), F(0.10), F(0)),
    Mining(F(1.55), F(7), F(2.8), F(4.0), F(0.16), F(0.8)),
)
"""Conservative, standard, aggressive."""


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


def mine(game: "Prospector", asteroid: Asteroid, how: Mining) -> None:
    ship = game.ship
    toolf, heatf = clamp(ship.tool / FULL, 0, 1), clamp(ship.heat / FULL, 0, 2)
    amounts = scaled(extract(game.stream, asteroid, how, toolf, heatf), positive(MAX_CARGO - ship.load))
    ship.cargo = [have + more for have, more in zip(ship.cargo, amounts, strict=True)]
    ship.heat, ship.tool = ship.heat + how.heat, ship.tool - how.wear
    ship.alert = ship.alert + how.alert
    asteroid.depletion = clamp(asteroid.depletion + F(0.01) * total(amounts), 0, 1)
    ship.mined += 1
    if game.stream.unit() < fracture_chance(game, asteroid, how, toolf, heatf):
        ship.hull = ship.hull - 12 * game.stream.uniform(0.5, 1)
        asteroid.depletion = F(1)
        game.node.hazard = clamp(game.node.hazard + F(0.1), 0, 1)
        game.count("fracture")


def extract(stream: Stream, asteroid: Asteroid, how: Mining, toolf: Number, heatf: Number) -> list[Number]:
    """What comes out, by commodity; a hot tool works badly."""
    noise = exp(stream.normal(0, how.sigma))
    hot = 1 - (heatf - F(0.7)) / F(0.3)
    efficiency = F(1) if heatf <= F(0.7) else max(F(0.1), hot)
    amount = asteroid.richness * positive(1 - asteroid.depletion) * (F(0.4) + F(0.6) * toolf)
    amount = amount * efficiency * how.yields * noise
    return [amount * part for part in asteroid.composition]


def scaled(amounts: list[Number], free: Number) -> list[Number]:
    """As much of it as fits."""
    whole = total(amounts)
    return [amount * (free / whole) for amount in amounts] if whole > free else amounts


def fracture_chance(
    game: "Prospector", asteroid: Asteroid, how: Mining, toolf: Number, heatf: Number
) -> Number:
    logit = F(-3.1) + how.bias + F(2.5) * (1 - asteroid.stability)
    logit = logit + F(2.2) * positive(heatf - F(0.7)) + F(1.5) * (1 - toolf)
    if game.ship.buffs[game.ship.selected] > 0:
        logit = logit - F(1.1)
    return sigmoid(logit)
