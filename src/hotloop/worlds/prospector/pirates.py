"""Pirates may come for the cargo."""

from typing import TYPE_CHECKING

from hotloop.worlds.prospector.numbers import CREDIT_SCALE, FULL, F, Number, clamp, log, power, sigmoid

if TYPE_CHECKING:
    from hotloop.worlds.prospector.twin import Prospector


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
