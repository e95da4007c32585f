"""What a game consists of, and its words to hash; state.h and digest.h have the same."""

import json
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from enum import IntEnum
from typing import Any, Self

from hotloop.worlds.cards import COUNTERS
from hotloop.worlds.cards.table import CARDS, CREATURES, Card, CardEffect, Keyword

SEATS = 2
HERO, VILLAIN = range(SEATS)
DECK = 60  # Places for cards a seat; a card is known by seat * DECK + its place in the deck's list
OBJECTS = SEATS * DECK  # Where objects that are no cards begin: OBJECTS + seat is a player
NONE = -1
LIFE, HAND = 20, 7
EVENTS = 32  # As many are kept, the oldest go


class Zone(IntEnum):
    """Where a card is."""

    LIBRARY = 0
    HAND = 1
    BATTLEFIELD = 2
    GRAVEYARD = 3
    STACK = 4
    EXILE = 5


class TurnStep(IntEnum):
    """The steps of a turn, in their order."""

    UNTAP = 0
    UPKEEP = 1
    DRAW = 2
    MAIN = 3
    BEGIN_COMBAT = 4
    ATTACKERS = 5
    BLOCKERS = 6
    DAMAGE = 7
    END_COMBAT = 8
    SECOND_MAIN = 9
    END = 10
    CLEANUP = 11


class Wants(IntEnum):
    """What is to be decided."""

    NOTHING = 0
    PRIORITY = 1
    ATTACKER = 2
    BLOCKER = 3
    TARGET = 4


class OptionKind(IntEnum):
    """What an option is, in the order of the observation."""

    LAND = 0
    CAST = 1
    ABILITY = 2
    PASS = 3
    ATTACK = 4
    BLOCK = 5
    TARGET = 6


class Item(IntEnum):
    """What lies on the stack."""

    SPELL = 0
    ABILITY = 1
    TRIGGER = 2


class Ending(IntEnum):
    """Why a game ended."""

    NONE = 0
    LIFE = 1
    LIBRARY = 2
    DRAW = 3
    TIMEOUT = 4


class Happened(IntEnum):
    """What an event is."""

    DRAW = 0
    LAND = 1
    CAST = 2
    ABILITY = 3
    TRIGGER = 4
    RESOLVE = 5
    COUNTERED = 6
    ATTACK = 7
    BLOCK = 8
    DAMAGE = 9
    DIE = 10
    RETURN = 11


class Count(IntEnum):
    """What is counted: every event by its number, and these."""

    LIFE = 12
    LIBRARY = 13
    DRAWN = 14
    TIMEOUT = 15
    DECISIONS = 16
    REFUSED = 17
    OPTIONS_TRUNCATED = 18
    PERMANENTS_TRUNCATED = 19


@dataclass(frozen=True, slots=True)
class GameOption:
    """One of the things that can be chosen."""

    kind: int
    subject: int = NONE  # The card it is about
    object: int = NONE  # What else it is about: the attacker that is blocked, what is targeted


@dataclass(slots=True, kw_only=True)
class Copy:
    """One card of a deck."""

    kind: int
    zone: int = Zone.LIBRARY
    tapped: int = 0
    sick: int = 0  # It came after its player's last untap step
    damage: int = 0
    boost: int = 0
    doomed: int = 0  # Something with deathtouch has hurt it
    attacking: int = 0
    blocked: int = 0
    blocking: int = NONE  # The attacker it blocks
    moves: int = 0  # How often it changed its zone: what came back is another object

    @property
    def row(self) -> Card:
        return CARDS[self.kind]

    @property
    def power(self) -> int:
        return self.row.power + self.boost

    @property
    def is_creature(self) -> bool:
        return self.kind in CREATURES

    @property
    def makes_mana(self) -> bool:
        """Whether it can be tapped for mana now."""
        return self.row.effect == CardEffect.MANA and not self.tapped and not (self.is_creature and self.sick)

    def has(self, keyword: Keyword) -> bool:
        return bool(self.row.keywords & keyword)


@dataclass(slots=True, kw_only=True)
class PlayerSide:
    """What one player has; the top of a library is its end."""

    life: int = LIFE
    mana: list[int] = field(default_factory=lambda: [0] * 6)  # Colourless, then the five colours
    land_played: int = 0
    drew_nothing: int = 0
    library: list[int] = field(default_factory=list)
    hand: list[int] = field(default_factory=list)
    battlefield: list[int] = field(default_factory=list)
    graveyard: list[int] = field(default_factory=list)

    def fork(self) -> Self:
        return replace(
            self,
            mana=list(self.mana),
            library=list(self.library),
            hand=list(self.hand),
            battlefield=list(self.battlefield),
            graveyard=list(self.graveyard),
        )

    def zone(self, zone: int) -> list[int]:
        return (self.library, self.hand, self.battlefield, self.graveyard)[zone]


@dataclass(slots=True, kw_only=True)
class StackEntry:
    """Something on the stack."""

    item: int
    card: int
    seat: int
    target: int = NONE
    target_moves: int = 0  # The target's moves when it was chosen


@dataclass(slots=True, kw_only=True)
class GameState:
    """A game."""

    seed: int = 0
    turn: int = 0
    step: int = TurnStep.UNTAP
    active: int = HERO
    first: int = HERO  # Who began
    holder: int = HERO  # Who must choose
    passes: int = 0
    wants: int = Wants.NOTHING
    item: int = Item.SPELL
    subject: int = NONE  # What a target is chosen for, or who may attack or block
    # The place on the battlefield of the next who may attack or block; NONE when all were asked.
    cursor: int = NONE
    second_pass: int = 0  # Whether more combat damage follows
    ending: int = Ending.NONE
    winner: int = NONE
    decisions: int = 0
    sides: list[PlayerSide] = field(default_factory=list)
    cards: dict[int, Copy] = field(default_factory=dict)
    stack: list[StackEntry] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)  # Cards whose triggers are not on the stack yet
    attackers: list[int] = field(default_factory=list)
    # The last ones: what, whose, subject, object, amount, step.
    events: list[list[int]] = field(default_factory=list)
    event_count: int = 0
    # How many events had happened when each seat chose last.
    seen: list[int] = field(default_factory=lambda: [0, 0])
    options: list[GameOption] = field(default_factory=list)
    truncated: int = 0  # Options that did not fit, of the decision at hand
    counts: list[int] = field(default_factory=lambda: [0] * len(COUNTERS))  # Over the life of an env

    def creatures(self, seat: int) -> list[tuple[int, Copy]]:
        """A seat's creatures in battlefield order."""
        copies = [(card, self.cards[card]) for card in self.sides[seat].battlefield]
        return [(card, copy) for card, copy in copies if copy.kind in CREATURES]

    def tell(self, what: int, seat: int, subject: int = NONE, other: int = NONE, amount: int = 0) -> None:
        self.events = [*self.events, [what, seat, subject, other, amount, self.step]][-EVENTS:]
        self.event_count += 1
        self.counts[what] += 1

    def fork(self) -> Self:
        """The same game once more, to be played on by itself."""
        return replace(
            self,
            sides=[side.fork() for side in self.sides],
            cards={number: copy(card) for number, card in self.cards.items()},
            stack=[copy(entry) for entry in self.stack],
            pending=list(self.pending),
            attackers=list(self.attackers),
            seen=list(self.seen),
            options=list(self.options),
            counts=list(self.counts),
        )

    def freeze(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def thaw(cls, text: str) -> Self:
        facts: dict[str, Any] = json.loads(text)
        facts["sides"] = [PlayerSide(**side) for side in facts["sides"]]
        facts["cards"] = {int(card): Copy(**copy) for card, copy in facts["cards"].items()}
        facts["stack"] = [StackEntry(**entry) for entry in facts["stack"]]
        facts["options"] = [GameOption(**option) for option in facts["options"]]
        return cls(**facts)


def seat_of(card: int) -> int:
    return card // DECK


def move(s: GameState, card: int, zone: int) -> None:
    """Put a card into its owner's zone, on top; nothing of what it was stays with it."""
    copy, side = s.cards[card], s.sides[seat_of(card)]
    if copy.zone != Zone.STACK:
        side.zone(copy.zone).remove(card)
    if zone != Zone.STACK:
        side.zone(zone).append(card)
    s.cards[card] = Copy(kind=copy.kind, zone=zone, sick=int(zone == Zone.BATTLEFIELD), moves=copy.moves + 1)


def draw(s: GameState, seat: int) -> None:
    side = s.sides[seat]
    if not side.library:
        side.drew_nothing = 1
        return
    move(s, side.library[-1], Zone.HAND)
    s.tell(Happened.DRAW, seat)


def words(s: GameState) -> list[int]:
    words = [s.seed, s.turn, s.step, s.active, s.first, s.holder, s.passes, s.wants, s.item]
    words += (s.subject, s.cursor, s.second_pass, s.ending, s.winner, s.decisions, s.event_count, *s.seen)
    for side in s.sides:
        words += (side.life, side.land_played, side.drew_nothing)
        for zone in (side.library, side.hand, side.battlefield):
            words += (len(zone), *zone)
        words.append(len(side.graveyard))
    for _, card in sorted(s.cards.items()):
        flags = card.tapped | card.sick << 1 | card.doomed << 2 | card.attacking << 3 | card.blocked << 4
        where = card.kind | card.zone << 8 | flags << 16 | (card.blocking & 0xFF) << 24
        words.append(where | card.damage << 32 | card.boost << 40 | card.moves << 48)
    for entry in s.stack:
        what = entry.item | entry.card << 8 | entry.seat << 16 | (entry.target & 0xFF) << 24
        words.append(what | entry.target_moves << 32)
    words += (len(s.stack), *s.pending, len(s.pending), *s.attackers, len(s.attackers), len(s.options))
    words += [o.kind << 32 | (o.subject & 0xFFFF) << 16 | o.object & 0xFFFF for o in s.options]
    return words
