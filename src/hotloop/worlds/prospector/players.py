"""The scripted players of the prospector world: the specification of players.h.

They see what the ship sees and nothing else. An observation does not say which node a way leads to, so a
player remembers, of every node it has been at, where its ways led and which of them leads back: the one that
takes as long and as much fuel as the one it came by.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hotloop.core.world import Plan
from hotloop.worlds.prospector.numbers import (
    COMMODITIES,
    MAX_ASTEROIDS,
    MAX_NODES,
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

UNKNOWN = -1
SELL, BUY_FUEL, BUY_KIT, OVERHAUL, CASH_OUT, DOCK = 43, 61, 64, 67, 68, 42
SCAN_WIDE, SCAN_DEEP, SELECT, MINE, STABILISE = 8, 10, 12, 28, 31
REPAIR_TOOL, REPAIR_HULL = 34, 35
FUEL_PRICES = (60, 120, 210)
LONGEST_WAIT = 12
"""Steps a patient player waits at the station for better prices."""
BUFF_STEPS = 4
"""Steps for which an asteroid counts as stabilised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """Where a player draws its lines; shares are of the maximum."""

    cargo: Number
    """It goes home with more in the hold, with more heat, with less hull or with less fuel than these."""
    heat: Number
    hull: Number
    fuel: Number
    refuel: Number
    """Below it buys fuel."""
    overhaul: Number
    """With less hull it has the ship overhauled."""
    scans: bool = False
    """Whether it looks before it mines, mines gently and gives up in time."""
    patient: bool = False
    """Whether it waits for prices to rise."""


@dataclass(slots=True, kw_only=True)
class Memory:
    """What a player knows of its episode."""

    leads: list[list[int]] = field(default_factory=lambda: [[UNKNOWN] * SLOTS for _ in range(MAX_NODES)])
    back: list[int] = field(default_factory=lambda: [UNKNOWN] * MAX_NODES)
    """The slot of each node that leads to where it was first come to from."""
    parent: list[int] = field(default_factory=lambda: [UNKNOWN] * MAX_NODES)
    closed: list[bool] = field(default_factory=lambda: [False] * MAX_NODES)
    """Nothing is left there nor behind it."""
    node: int = 0
    slot: int = UNKNOWN
    """The way taken last, and how long it was and what it cost, as seen before."""
    time: float = 0.0
    fuel: float = 0.0
    waited: int = 0
    buff: int = 0
    reckless: bool = False
    """It could not pay for its hull, and goes on regardless."""


def affordable(price: int) -> Number:
    """The observation of credits from which a price can be paid."""
    return log(F(1) + F(price + 1)) / RICHEST


class Player:
    """One player of one env."""

    habits: ClassVar[Habits]

    def __init__(self, plan: Plan, seen: Mapping[str, Any]) -> None:
        self.seen = seen
        self.row: list[float] = []
        self.memory = Memory()

    def restart(self) -> None:
        self.memory = Memory()

    def choose(self) -> Sequence[int]:
        self.row = self.seen["observations"][0].tolist()
        self.learn()
        if self.row[17]:
            return [self.trade()]
        return [self.go_home() if self.should_go_home() else self.work()]

    # What it sees.

    @property
    def node(self) -> int:
        return int(self.row[22] * 31 + 0.5)

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
        return bool(self.row[7] >= affordable(price))

    # What it remembers.

    def learn(self) -> None:
        """Note where the last way led."""
        memory, node = self.memory, self.node
        if node == memory.node or memory.slot == UNKNOWN:
            return
        memory.leads[memory.node][memory.slot] = node
        if node != 0 and memory.back[node] == UNKNOWN:
            same = (slot for slot in self.ways() if self.way(slot)[4:6] == [memory.time, memory.fuel])
            memory.back[node] = next(same, UNKNOWN)
            memory.parent[node] = memory.node
        memory.node, memory.waited = node, 0

    def take(self, slot: int) -> int:
        memory = self.memory
        memory.node, memory.slot = self.node, slot
        memory.time, memory.fuel = self.way(slot)[4:6]
        return slot

    # At the station.

    def trade(self) -> int:
        """Sell, then see to fuel and hull, then leave; with nowhere to go it is over."""
        sale = self.sale()
        if sale is not None:
            return sale
        if self.row[0] < self.habits.refuel:
            for offer in (2, 1, 0):
                if self.can_pay(FUEL_PRICES[offer]):
                    return BUY_FUEL + offer
        hurt = self.row[1] < self.habits.overhaul or self.row[3] < F(0.3)
        if hurt and self.can_pay(280):
            return OVERHAUL
        self.memory.reckless = self.row[1] < self.habits.hull
        if self.memory.reckless and self.row[14]:
            return REPAIR_HULL
        if self.habits.scans and (self.memory.reckless or self.row[0] < self.habits.fuel):
            return CASH_OUT
        return self.leave()

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
        """By the cheapest way that may lead to something; whoever is careful takes clusters first."""
        open_ways = [slot for slot in self.ways() if not self.is_closed(slot)]
        if not open_ways:
            return CASH_OUT
        return self.take(min(open_ways, key=self.cost))

    def cost(self, slot: int) -> Number:
        dear = self.habits.scans and self.way(slot)[3] != 0
        return F(self.way(slot)[5]) + F(dear)

    def is_closed(self, slot: int) -> bool:
        """Whether nothing is to be hoped for that way: it is used up, or another way's business."""
        memory, node = self.memory, self.node
        to = memory.leads[node][slot]
        return to != UNKNOWN and (to == 0 or memory.closed[to] or memory.parent[to] != node)

    # In the field.

    def should_go_home(self) -> bool:
        row, habits = self.row, self.habits
        hurt = row[1] < habits.hull and not self.memory.reckless
        return bool(row[4] > habits.cargo or row[2] > habits.heat or row[0] < habits.fuel or hurt)

    def go_home(self) -> int:
        """To the station where it can be seen, else back the way it came."""
        ways = list(self.ways())
        for slot in ways:
            if self.way(slot)[1]:
                return self.take(slot)
        back = self.memory.back[self.node]
        return self.take(ways[0] if back == UNKNOWN else back)

    def work(self) -> int:
        """Mine what is best here; where nothing is left, look farther out."""
        rocks = [index for index in range(MAX_ASTEROIDS) if self.asteroid(index)[0]]
        left = [index for index in rocks if self.asteroid(index)[8] < F(0.9)]
        if not left:
            return self.go_on()
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

    def go_on(self) -> int:
        """Farther out where there is hope and fuel, else home, never to come back."""
        memory, node = self.memory, self.node
        hopes = [slot for slot in self.ways() if slot != memory.back[node] and not self.is_closed(slot)]
        hopes = [slot for slot in hopes if not self.way(slot)[1]]
        if hopes and self.row[0] > F(0.5):
            return self.take(min(hopes, key=self.cost))
        memory.closed[node] = not hopes
        return self.go_home()


class Greedy(Player):
    """Mines hard and comes home late."""

    habits = Habits(
        cargo=F(0.85), heat=F(0.8), hull=F(0.4), fuel=F(0), refuel=F(0.4), overhaul=F(0.4)
    )


class Cautious(Player):
    """Looks first, mines gently, comes home early and gives up while it still can."""

    habits = Habits(
        cargo=F(0.70), heat=F(0.75), hull=F(0.55), fuel=F(0.35), refuel=F(0.6), overhaul=F(0.8), scans=True
    )


class Timer(Player):
    """Sells a little while a price rises, and waits while it falls."""

    habits = Habits(
        cargo=F(0.80), heat=F(0.8), hull=F(0.45), fuel=F(0.25), refuel=F(0.5), overhaul=F(0.5), patient=True
    )
