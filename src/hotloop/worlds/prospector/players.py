"""The scripted players of the prospector world: the specification of players.h.

They see what the ship sees and nothing else. They work the nodes next to the station, one after another, come
home to sell, and cash out when nothing is left there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hotloop.core.world import Plan
from hotloop.worlds.prospector.numbers import (
    COMMODITIES,
    MAX_ASTEROIDS,
    NOTHING,
    PRICE_BASE,
    SLOTS,
    F,
    Number,
    log,
)
from hotloop.worlds.prospector.observe import (
    ASTEROID_SIZE,
    ASTEROIDS_AT,
    CHANGES_AT,
    EDGE_SIZE,
    EDGES_AT,
    PRICES_AT,
    RICHEST,
)

NOWHERE = -1
SELL, BUY_FUEL, BUY_KIT, OVERHAUL, CASH_OUT, DOCK = 43, 61, 64, 67, 68, 42
SCAN_WIDE, SCAN_DEEP, SELECT, MINE, STABILISE = 8, 10, 12, 28, 31
REPAIR_TOOL, REPAIR_HULL, JETTISON_IRON = 34, 35, 36
FUEL_PRICES = (60, 120, 210)
LONGEST_WAIT = 12  # Steps a patient player waits at the station for better prices
BUFF_STEPS = 4  # Steps for which an asteroid counts as stabilised


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayerHabits:
    """Where a player draws its lines; shares are of the maximum."""

    # It goes home with more in the hold, with more heat, with less hull or with less fuel than these.
    cargo: Number
    heat: Number
    hull: Number
    fuel: Number
    refuel: Number  # Below it buys fuel
    overhaul: Number  # With less hull it has the ship overhauled, or mends it with a kit
    alert: Number  # With more it throws iron overboard, or nothing, which calms as well
    scans: bool = False  # Whether it looks before it mines, mines gently and gives up in time
    patient: bool = False  # Whether it waits for prices to rise


@dataclass(slots=True, kw_only=True)
class PlayerMemory:
    """What a player knows of its episode."""

    slot: int = NOWHERE  # The way it left the station by
    # Which of the station's ways lead to nodes where nothing is left.
    closed: list[bool] = field(default_factory=lambda: [False] * SLOTS)
    lost: int = 0  # How often it looked for a way home from a node that is not next to the station
    waited: int = 0
    buff: int = 0
    line: Number = NOTHING  # With less hull it goes home; lower where it left the station unmended


class ScriptedProspector:
    """One player of one env."""

    def __init__(self, plan: Plan, seen: Mapping[str, Any], habits: PlayerHabits) -> None:
        self.seen, self.habits = seen, habits
        self.row: list[float] = []
        self.memory = PlayerMemory()

    def restart(self) -> None:
        self.memory = PlayerMemory()

    def choose(self) -> Sequence[int]:
        self.row = self.seen["observations"][0].tolist()
        if self.row[17]:
            return [self.trade()]
        row, habits = self.row, self.habits
        hurt = row[1] < self.memory.line
        goes_home = row[4] > habits.cargo or row[2] > habits.heat or row[0] < habits.fuel or hurt
        return [self.go_home() if goes_home else self.work()]

    # What it sees.

    def ways(self) -> Iterator[int]:
        """The slots of this node that lead somewhere."""
        return (slot for slot in range(SLOTS) if self.row[EDGES_AT + slot * EDGE_SIZE])

    def way(self, slot: int) -> list[float]:
        """Present, station, cluster, hazard, time, fuel, threat."""
        return self.row[EDGES_AT + slot * EDGE_SIZE :][:EDGE_SIZE]

    def asteroid(self, index: int) -> list[float]:
        """Present, composition (6), stability, depletion, confidence, selected."""
        return self.row[ASTEROIDS_AT + index * ASTEROID_SIZE :][:ASTEROID_SIZE]

    def worth(self, index: int) -> Number:
        """What an asteroid promises: value of its composition, sure to hold, and not used up."""
        rock = self.asteroid(index)
        value = F(0)
        for c in range(COMMODITIES):
            value = F(value + F(self.row[PRICES_AT + c]) * PRICE_BASE[c] * F(rock[1 + c]))
        return value * F(rock[7]) * (1 - F(rock[8]))

    def can_pay(self, price: int) -> bool:
        credits_shown = log(F(1) + F(price + 1)) / RICHEST  # as a share of the richest
        return bool(self.row[7] >= credits_shown)

    # At the station.

    def trade(self) -> int:
        """Sell, calm down, see to fuel and hull, then leave; with nowhere to go it is over."""
        sale = self.sale()
        if sale is not None:
            return sale
        if self.row[5] > F(0.1):
            return DOCK
        return self.refuel() or self.mend() or self.leave()

    def refuel(self) -> int:
        """The largest offer it can pay; 0 where it needs none."""
        offers = (2, 1, 0) if self.row[0] < self.habits.refuel else ()
        return next((BUY_FUEL + offer for offer in offers if self.can_pay(FUEL_PRICES[offer])), 0)

    def mend(self) -> int:
        """Repair the ship, or have it repaired; a careful player gives up if that fails; 0 if all is well."""
        hull, habits = self.row[1], self.habits
        if (hull < habits.overhaul or self.row[3] < F(0.3)) and self.can_pay(280):
            return OVERHAUL
        if hull < habits.overhaul and self.row[14]:
            return REPAIR_HULL
        if habits.scans and (hull < habits.hull or self.row[0] < habits.fuel):
            return CASH_OUT
        # If it leaves with less than it would come home with, it is mended next time, or not at all.
        lines = (habits.hull, habits.overhaul)
        self.memory.line = next((line for line in lines if hull >= line), F(0))
        return 0

    def sale(self) -> int | None:
        """All of it, or a quarter of what rises while patience lasts."""
        loaded = [c for c in range(COMMODITIES) if self.row[8 + c]]
        if not loaded:
            return None
        if not self.habits.patient or self.memory.waited >= LONGEST_WAIT:
            return SELL + 3 * loaded[0] + 2
        self.memory.waited += 1
        rising = [c for c in loaded if self.row[CHANGES_AT + c] > 0]
        return SELL + 3 * rising[0] if rising else DOCK

    def leave(self) -> int:
        """Take the cheapest way that may lead to something; a careful player takes clusters first."""
        open_ways = [slot for slot in self.ways() if not self.memory.closed[slot]]
        if not open_ways:
            return CASH_OUT
        self.memory.slot, self.memory.waited = min(open_ways, key=self.cost), 0
        return self.memory.slot

    def cost(self, slot: int) -> Number:
        dear = self.habits.scans and self.way(slot)[3] != 0
        return F(self.way(slot)[5]) + F(dear)

    # In the field.

    def go_home(self) -> int:
        """To the station where it can be seen, else anywhere, by one way after another."""
        ways = list(self.ways())
        for slot in ways:
            if self.way(slot)[1]:
                return slot
        self.memory.lost += 1
        return ways[self.memory.lost % len(ways)]

    def work(self) -> int:
        """Mine what is best here; where nothing is left, go home, never to come back."""
        rocks = [index for index in range(MAX_ASTEROIDS) if self.asteroid(index)[0]]
        left = [index for index in rocks if self.asteroid(index)[8] < F(0.9)]
        if not left:
            if self.memory.slot != NOWHERE:
                self.memory.closed[self.memory.slot] = True
            return self.go_home()
        if self.habits.scans:
            confidence = F(0)
            for index in rocks:
                confidence = F(confidence + F(self.asteroid(index)[9]))
            if confidence < F(0.35) * len(rocks):
                return SCAN_WIDE
        best = self.best(left)
        if not self.asteroid(best)[10]:
            self.memory.buff = 0
            return SELECT + best
        return self.mine(best)

    def best(self, left: list[int]) -> int:
        """The one that promises most; the selected one is kept while it is not much worse."""
        best = left[0]
        for index in left:
            if self.worth(index) > self.worth(best):
                best = index
        for index in left:
            if self.asteroid(index)[10] and self.worth(index) >= F(0.7) * self.worth(best):
                best = index
        return best

    def mine(self, index: int) -> int:
        row, rock, memory = self.row, self.asteroid(index), self.memory
        if row[5] > self.habits.alert:
            return JETTISON_IRON
        if row[3] < F(0.3) and row[14]:
            return REPAIR_TOOL
        if not self.habits.scans:
            hard = row[3] > F(0.6) and row[2] < F(0.6)
            return MINE + 2 if hard else MINE + 1
        if rock[9] < F(0.6):
            return SCAN_DEEP
        if rock[7] < F(0.4) and row[15] and memory.buff == 0:
            memory.buff = BUFF_STEPS
            return STABILISE
        memory.buff = max(0, memory.buff - 1)
        return MINE


# Mines hard and comes home late.
Greedy = partial(
    ScriptedProspector,
    habits=PlayerHabits(
        cargo=F(0.85), heat=F(0.8), hull=F(0.4), fuel=F(0), refuel=F(0.4), overhaul=F(0.15), alert=F(0.5)
    ),
)

# Looks first, mines gently, comes home early and gives up while it still can.
Cautious = partial(
    ScriptedProspector,
    habits=PlayerHabits(
        cargo=F(0.70),
        heat=F(0.75),
        hull=F(0.55),
        fuel=F(0.35),
        refuel=F(0.6),
        overhaul=F(0.8),
        alert=F(0.25),
        scans=True,
    ),
)

# Sells a little while a price rises, and waits while it falls.
Timer = partial(
    ScriptedProspector,
    habits=PlayerHabits(
        cargo=F(0.80),
        heat=F(0.8),
        hull=F(0.45),
        fuel=F(0.25),
        refuel=F(0.5),
        overhaul=F(0.5),
        alert=F(0.4),
        patient=True,
    ),
)
