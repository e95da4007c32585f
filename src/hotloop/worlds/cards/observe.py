"""What the player who must choose sees, one row of float32, and people a line a decision; see observe.h.

A card's row is its place in its deck's list. A card in a library is in no row, nor one in the opponent's
hand: its row is zero. The k-th row of permanents is the k-th of the cards' rows that is on the battlefield.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.world import Part
from hotloop.worlds.cards.state import (
    DECK,
    EVENTS,
    HERO,
    NONE,
    OBJECTS,
    Copy,
    GameState,
    Happened,
    Item,
    TurnStep,
    Zone,
    seat_of,
)
from hotloop.worlds.cards.table import CARDS, CardEffect, Keyword, Type

PLAYER, CARD, PERMANENT, ACTION, FOCUS, EVENT = 26, 29, 5, 8, 2, 7
KINDS = 7
# The steps that begin the second phase and those after it.
PHASES = (TurnStep.MAIN, TurnStep.BEGIN_COMBAT, TurnStep.SECOND_MAIN, TurnStep.END)
SHOWN_EFFECTS = (CardEffect.MANA, CardEffect.HARM, CardEffect.COUNTER, CardEffect.RETURN)
# The columns of a card that say where it is.
IN_ZONE = tuple(tuple(float(zone == each) for each in Zone) for zone in Zone)


POINTED_AT = ("agent_cards", "opponent_cards", "agent", "opponent")  # What a focus numbers, one after another


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLimits:
    """How much of everything an observation has room for."""

    actions: int
    permanents: int

    @property
    def parts(self) -> tuple[Part, ...]:
        return (
            Part(name="agent", shape=(1, PLAYER)),
            Part(name="opponent", shape=(1, PLAYER)),
            Part(name="agent_cards", shape=(DECK, CARD), kind="objects"),
            Part(name="opponent_cards", shape=(DECK, CARD), kind="objects"),
            self.permanents_of("agent"),
            self.permanents_of("opponent"),
            Part(name="actions", shape=(self.actions, ACTION), kind="options"),
            Part(name="focus", shape=(self.actions, FOCUS), points_at=POINTED_AT),
            Part(name="events", shape=(EVENTS, EVENT), kind="log"),
        )

    def permanents_of(self, whose: str) -> Part:
        """The k-th of them is the k-th card of its side that is on the battlefield."""
        return Part(
            name=f"{whose}_permanents",
            shape=(self.permanents, PERMANENT),
            kind="objects",
            joins=f"{whose}_cards",
            joins_where=Zone.BATTLEFIELD,
        )

    @property
    def row(self) -> int:
        end: int = max(place.stop for place, _ in places(self).values())
        return end


@cache
def places(limits: RowLimits) -> dict[str, tuple[slice, tuple[int, ...]]]:
    """Where each part lies in a row, and its shape."""
    ends = accumulate(part.size for part in limits.parts)
    return {
        part.name: (slice(end - part.size, end), part.shape)
        for part, end in zip(limits.parts, ends, strict=True)
    }


def views(row: NDArray[np.float32], limits: RowLimits) -> dict[str, NDArray[np.float32]]:
    """The parts of a row, each in its shape."""
    return {name: row[place].reshape(shape) for name, (place, shape) in places(limits).items()}


def observation(s: GameState, seat: int, limits: RowLimits) -> NDArray[np.float32]:
    """The whole row, for one seat."""
    row = np.zeros(limits.row, np.float32)
    parts = views(row, limits)
    for side, whose in ((seat, "agent"), (1 - seat, "opponent")):
        fill(parts[whose], [player(s, side)])
        for place, copy in shown_cards(s, side, seat):
            parts[f"{whose}_cards"][place] = card(copy, mine=side == seat)
        shown = permanents(s, side)[: limits.permanents]
        mine = float(side == seat)
        states = [(mine, float(copy.tapped), copy.damage / 10, float(copy.sick), 1.0) for copy in shown]
        fill(parts[f"{whose}_permanents"], states)
    fill(
        parts["actions"],
        [[*(float(option.kind == kind) for kind in range(KINDS)), 1.0] for option in s.options],
    )
    fill(parts["focus"], [[relative(o.subject, seat), relative(o.object, seat)] for o in s.options])
    fresh = min(s.event_count - s.seen[seat], EVENTS)  # since the seat chose last, as far as they were kept
    fill(parts["events"], [event_row(event, seat) for event in s.events[len(s.events) - fresh :]])
    return row


def fill(part: NDArray[np.float32], rows: Sequence[Sequence[float]]) -> None:
    """Write the first rows of a part; those behind them stay zero."""
    if rows:
        part[: len(rows)] = rows


def player(s: GameState, side: int) -> list[float]:
    own = s.sides[side]
    on_stack = sum(entry.item == Item.SPELL and seat_of(entry.card) == side for entry in s.stack)
    counts = [len(own.library), len(own.hand), len(own.battlefield), len(own.graveyard), on_stack, 0]
    phase = sum(s.step >= first for first in PHASES)
    return [
        own.life / 20,
        float(s.active == side),
        *(count / DECK for count in counts),
        *(float(phase == k) for k in range(len(PHASES) + 1)),
        *(float(s.step == k) for k in TurnStep),
        1.0,
    ]


def shown_cards(s: GameState, side: int, seat: int) -> Iterator[tuple[int, Copy]]:
    hidden = (Zone.LIBRARY,) if side == seat else (Zone.LIBRARY, Zone.HAND)
    for number, copy in s.cards.items():
        if number // DECK == side and copy.zone not in hidden:
            yield number % DECK, copy


def card(copy: Copy, *, mine: bool) -> list[float]:
    return [*IN_ZONE[copy.zone], float(mine), copy.power / 10, *printed(copy.kind)]


@cache
def printed(kind: int) -> tuple[float, ...]:
    """What a card shows wherever it is: toughness, value, type, effect, keywords, and that it is one."""
    row = CARDS[kind]
    return (
        row.toughness / 10,
        row.value / 10,
        *(float(row.type == each) for each in Type),
        *(float(row.effect == each) for each in SHOWN_EFFECTS),
        *(float(bool(row.keywords & keyword)) for keyword in Keyword),
        1.0,
    )


def permanents(s: GameState, side: int) -> list[Copy]:
    return [s.cards[number] for number in sorted(s.sides[side].battlefield)]


def relative(number: int, seat: int) -> int:
    """An object as a seat numbers it: its own cards, the opponent's, then itself and the other."""
    if number == NONE or seat == 0:
        return number
    return (number + DECK) % OBJECTS if number < OBJECTS else OBJECTS + 1 - (number - OBJECTS)


def event_row(event: list[int], seat: int) -> list[float]:
    """What happened, whether it was mine, what it was about, how much, when."""
    what, whose, subject, object_, amount, step = event
    about = (relative(subject, seat), relative(object_, seat))
    return [float(what), float(whose == seat), *map(float, about), amount / 10, float(step), 1.0]


WORDS = {
    Happened.DRAW: "draws",
    Happened.LAND: "plays",
    Happened.CAST: "casts",
    Happened.ABILITY: "activates",
    Happened.TRIGGER: "triggers",
    Happened.RESOLVE: "resolves",
    Happened.COUNTERED: "loses the spell",
    Happened.ATTACK: "attacks with",
    Happened.BLOCK: "blocks with",
    Happened.DAMAGE: "deals",
    Happened.DIE: "buries",
    Happened.RETURN: "returns",
}
NAMES = ("hero", "villain")


class CardsNarrator:
    """Tells what both did since the last decision, and where the game stands."""

    def __init__(self, limits: RowLimits, decks: tuple[list[int], list[int]]) -> None:
        self.limits, self.decks = limits, decks
        self.seat = HERO
        self.turn = 0

    def tell(self, shown: Mapping[str, Any]) -> str:
        over = bool(shown["end_reason"])
        seat = self.seat if over else int(shown["seat"])
        self.seat = int(shown["seat"])
        parts = views(shown["observations"][0], self.limits)
        lives = [round(float(parts[name][0, 0]) * 20) for name in ("agent", "opponent")]
        mine, theirs = lives if seat == HERO else lives[::-1]
        step = TurnStep(int(parts["agent"][0, 13:25].argmax())).name.lower().replace("_", " ")
        happened = "; ".join(self.event(row, seat) for row in parts["events"] if row[-1])
        turn = int(shown["turn_count"])
        head = f"turn {turn:2}" if turn != self.turn else " " * 7
        self.turn = 0 if over else turn
        return f"{head}  {step:12} hero {mine:2}  villain {theirs:2}   {happened or 'nothing happens'}"

    def event(self, row: Any, seat: int) -> str:
        what, subject, other = Happened(int(row[0])), int(row[2]), int(row[3])
        who = NAMES[seat if row[1] else 1 - seat]
        if what == Happened.DAMAGE:
            harmed = self.name(other, seat)
            return f"{who}'s {self.name(subject, seat)} deals {round(float(row[4]) * 10)} to {harmed}"
        about = "" if subject == NONE else f" {self.name(subject, seat)}"
        at = "" if other == NONE else f" at {self.name(other, seat)}"
        return f"{who} {WORDS[what]}{about}{at}" if what != Happened.DRAW else f"{who} draws a card"

    def name(self, number: int, seat: int) -> str:
        """An object as this seat numbers it."""
        if number >= OBJECTS:
            return NAMES[seat if number == OBJECTS else 1 - seat]
        owner = seat if seat_of(number) == 0 else 1 - seat
        return CARDS[self.decks[owner][number % DECK]].name
