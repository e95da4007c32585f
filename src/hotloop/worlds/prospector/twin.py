"""The prospector world in plain Python: its specification. prospector.h must agree to the byte.

One ship in a graph of nodes: it scans and mines asteroids, survives hazards and pirates, and sells at the
station. An action takes one or more ticks. All arithmetic is float32 in the order written. Where this
file and the native rules differ, this file is right.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hotloop.core.exact_math import mix
from hotloop.core.world import Plan
from hotloop.worlds.prospector.actions import ACTIONS, HOLD, TABLE, hold, pirates
from hotloop.worlds.prospector.numbers import (
    COMMODITIES,
    CREDIT_SCALE,
    FULL,
    MAX_CARGO,
    MAX_FUEL,
    PRICE_BASE,
    PRICE_MAX,
    PRICE_MIN,
    STATION,
    TWO_PI,
    F,
    Number,
    Stream,
    clamp,
    exp,
    positive,
    sin,
    sqrt,
)
from hotloop.worlds.prospector.observe import METRICS, observation
from hotloop.worlds.prospector.state import Asteroid, Market, ProspectorState, Ship, SpaceNode, begin, words

SCAN_ACTIONS = (8, 9, 10)


class Prospector:
    """One env of the prospector world."""

    def __init__(self, plan: Plan, out: Mapping[str, Any]) -> None:
        self.out = out
        self.time_max: int = plan["time_max"]
        self.penalty = F(plan["invalid_action_penalty"])
        self.chosen: Sequence[int] = ()
        self.counters: dict[str, int] = {}
        self.episode_seed = 0
        self.stream = Stream(0)
        self.state = ProspectorState(ship=Ship(), market=Market(), nodes=[])
        self.dt = 1
        self.invalid = self.cashed_out = False
        self.before: tuple[Number, ...] = ()

    def restart(self, episode_seed: int) -> None:
        self.episode_seed = episode_seed
        self.stream = Stream(episode_seed)
        self.state = begin(self.stream, self.time_max)
        self.observations()

    @property
    def ship(self) -> Ship:
        return self.state.ship

    @property
    def node(self) -> SpaceNode:
        return self.state.nodes[self.state.ship.node]

    @property
    def at_station(self) -> bool:
        return self.node.kind == STATION

    @property
    def target(self) -> Asteroid | None:
        """The selected asteroid, if it is here and not used up."""
        asteroids, selected = self.node.asteroids, self.ship.selected
        if not 0 <= selected < len(asteroids) or not asteroids[selected].depletion < 1:
            return None
        return asteroids[selected]

    @property
    def cargo_value(self) -> Number:
        summed = F(0)
        for amount, price in zip(self.ship.cargo, self.state.market.price, strict=True):
            summed = F(summed + amount * price)
        return summed

    # The phases, in the order that __init__.py gives them.

    def action(self) -> None:
        ship = self.ship
        self.before = (ship.credits, ship.fuel, ship.hull, ship.tool, self.cargo_value, ship.lost)
        self.dt, self.cashed_out = 1, False
        chosen = self.chosen[0]
        known = 0 <= chosen < ACTIONS
        act = TABLE[chosen if known else HOLD]
        self.invalid = not (act.run(self, act.argument) and known)
        if self.invalid:
            self.dt = 1
            hold(self)
            self.count("invalid")

    def hazards(self) -> None:
        """What time does to the ship, and what lives at this node."""
        ship, dt = self.ship, self.dt
        ship.time -= dt
        ship.heat = positive(ship.heat - F(2.5) * dt)
        ship.escape = max(0, ship.escape - dt)
        ship.buffs = [max(0, buff - dt) for buff in ship.buffs]
        if ship.heat > FULL:
            ship.hull = ship.hull - F(1.25) * (ship.heat - FULL)
            ship.heat = F(FULL)
            ship.overheated += dt
            self.count("overheat")
        if self.at_station:
            return
        hazard = self.node.hazard
        if hazard > 0:
            ship.hull = ship.hull - dt * hazard * F(0.7) * self.stream.uniform(0.8, 1.2)
            ship.heat = ship.heat + dt * hazard * F(0.5)
            ship.alert = ship.alert + dt * hazard * F(0.8)
        pirates(self, self.node.pirate)

    def market(self) -> None:
        """Prices swing with the time, sink under what is in store and was sold, and are never quite sure."""
        market, dt = self.state.market, self.dt
        market.previous = list(market.price)
        t = F(self.ship.ticks + dt)
        fading, spread = exp(F(-dt) / 14), sqrt(F(dt))
        for c in range(COMMODITIES):
            base = PRICE_BASE[c]
            swing = market.amplitude[c] * sin(TWO_PI * (t / market.period[c]) + market.phase[c])
            noise = self.stream.normal(0, F(0.03) * base * spread)
            price = base + swing - F(0.04) * market.inventory[c] - F(0.05) * market.recent[c] + noise
            market.price[c] = clamp(price, PRICE_MIN[c], PRICE_MAX[c])
            market.recent[c] = market.recent[c] * fading
            market.inventory[c] = positive(market.inventory[c] * F(0.998))

    def rewards(self) -> None:
        """Bring everything into its range, end the episode where it ends, and pay."""
        ship, dt = self.ship, self.dt
        self.limit()
        ship.use = ship.use + clamp(ship.load / MAX_CARGO, 0, 1) * dt
        ship.ticks += dt
        destroyed = bool(ship.hull <= 0)
        stranded = bool(ship.fuel <= 0) and not self.at_station
        terminal = destroyed or stranded or self.cashed_out
        truncated = ship.time <= 0 and not terminal
        self.out["rewards"][0] = self.reward(destroyed, stranded, terminal or truncated)
        self.out["terminals"][...] = terminal
        self.out["truncations"][...] = truncated
        for name, value in METRICS.items():
            self.out[name][...] = value(ship, not (destroyed or stranded))
        self.out["dt"][...] = dt
        self.out["invalid"][...] = self.invalid
        for name, happened in (("destroyed", destroyed), ("stranded", stranded), ("time_up", truncated)):
            if happened:
                self.count(name)

    def limit(self) -> None:
        ship = self.ship
        ship.fuel = clamp(ship.fuel, 0, MAX_FUEL)
        ship.hull, ship.heat = clamp(ship.hull, 0, FULL), clamp(ship.heat, 0, FULL)
        ship.tool, ship.alert = clamp(ship.tool, 0, FULL), clamp(ship.alert, 0, FULL)
        ship.time = max(0, ship.time)
        ship.cargo = [clamp(amount, 0, MAX_CARGO) for amount in ship.cargo]
        load = ship.load
        if load > MAX_CARGO:
            ship.cargo = [amount * (MAX_CARGO / load) for amount in ship.cargo]

    def reward(self, destroyed: bool, stranded: bool, done: bool) -> Number:
        ship = self.ship
        money, fuel, hull, tool, worth, lost = self.before
        hot = positive(ship.heat - 70) / FULL
        reward = (ship.credits - money) / CREDIT_SCALE
        reward = reward + F(0.02) * positive(self.cargo_value - worth) / CREDIT_SCALE
        reward = reward - F(0.1) * positive(fuel - ship.fuel) / 100
        reward = reward - F(0.001) * self.dt
        reward = reward - F(0.05) * positive(tool - ship.tool) / 10
        reward = reward - positive(hull - ship.hull) / 10
        reward = reward - F(0.2) * (hot * hot)
        if self.chosen[0] in SCAN_ACTIONS:
            reward = reward - F(0.005)
        if self.invalid:
            reward = reward - self.penalty
        reward = reward - positive(ship.lost - lost) / CREDIT_SCALE
        if stranded:
            reward = reward - 50
        if destroyed:
            reward = reward - 100
        if done and not destroyed and not stranded:
            reward = reward + F(0.002) * ship.credits / CREDIT_SCALE
        return F(reward)

    def observations(self) -> None:
        seen = observation(self.state, self.time_max, selection_valid=self.target is not None)
        self.out["observations"][0, :] = np.fromiter(seen, np.float32)

    # What the batch asks of every twin.

    def count(self, name: str) -> None:
        self.counters[name] = self.counters.get(name, 0) + 1

    def digest(self) -> int:
        return mix(self.episode_seed, self.stream.state, *words(self.state))

    def save(self) -> bytes:
        return f"{self.episode_seed} {self.stream.state}\n{self.state.freeze()}".encode()

    def load(self, saved: bytes) -> None:
        head, _, state = saved.decode().partition("\n")
        self.episode_seed, self.stream.state = map(int, head.split())
        self.state = ProspectorState.thaw(state)
