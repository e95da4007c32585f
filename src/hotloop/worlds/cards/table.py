"""The cards, each a row, and the decks made of them; native code is given both with the plan."""

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from functools import cache

from hotloop.core.errors import InputError, unknown

DECK_LEAST, DECK_MOST = 40, 60

WHITE, BLUE, BLACK, RED, GREEN = range(5)
COLOURS = "WUBRG"


class Type(IntEnum):
    """What a card is, which says when it can be played."""

    LAND = 0
    CREATURE = 1
    INSTANT = 2


class CardEffect(IntEnum):
    """What a card's text does."""

    NOTHING = 0
    MANA = 1  # Taps for one mana of its colour
    HARM = 2  # Deals `HARM_DAMAGE` to any target
    COUNTER = 3  # Counters a spell
    RETURN = 4  # Returns a creature to its owner's hand when it enters
    PUMP = 5  # For one red mana it has +1/+0 this turn


HARM_DAMAGE = 3


class Keyword(IntFlag):
    """In the order of the observation."""

    FLYING = 1
    REACH = 2
    HASTE = 4
    VIGILANCE = 8
    DEATHTOUCH = 16
    TRAMPLE = 32
    DEFENDER = 64
    MENACE = 128
    FIRST_STRIKE = 256
    DOUBLE_STRIKE = 512
    LIFELINK = 1024


NO_KEYWORD = Keyword(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One row of the table."""

    name: str
    type: Type
    cost: str = ""  # A digit of generic mana, then a letter for each coloured one
    power: int = 0
    toughness: int = 0
    keywords: Keyword = NO_KEYWORD
    effect: CardEffect = CardEffect.NOTHING
    colour: int = 0  # Of the mana it makes, where it makes any

    @property
    def generic(self) -> int:
        return int(self.cost[0]) if self.cost[:1].isdigit() else 0

    @property
    def coloured(self) -> tuple[int, ...]:
        """How many of each colour it costs, in the order of `COLOURS`."""
        return colours_of(self.cost)

    @property
    def value(self) -> int:
        return self.generic + sum(self.coloured)

    @property
    def numbers(self) -> list[int]:
        """The row as native code is given it."""
        what = (self.type, self.power, self.toughness, self.keywords, self.effect, self.colour)
        return [self.generic, *self.coloured, *map(int, what)]


@cache
def colours_of(cost: str) -> tuple[int, ...]:
    return tuple(cost.count(letter) for letter in COLOURS)


def land(name: str, colour: int) -> Card:
    return Card(name=name, type=Type.LAND, effect=CardEffect.MANA, colour=colour)


def creature(
    name: str,
    cost: str,
    power: int,
    toughness: int,
    keywords: Keyword = NO_KEYWORD,
    effect: CardEffect = CardEffect.NOTHING,
) -> Card:
    return Card(
        name=name,
        type=Type.CREATURE,
        cost=cost,
        power=power,
        toughness=toughness,
        keywords=keywords,
        effect=effect,
        colour=GREEN,
    )


def instant(name: str, cost: str, effect: CardEffect) -> Card:
    return Card(name=name, type=Type.INSTANT, cost=cost, effect=effect)


CARDS = (
    land("meadow", WHITE),
    land("shore", BLUE),
    land("mire", BLACK),
    land("crag", RED),
    land("grove", GREEN),
    creature("sprout", "G", 1, 1, effect=CardEffect.MANA),
    creature("brute", "2R", 2, 2),
    instant("scorch", "R", CardEffect.HARM),
    instant("hush", "UU", CardEffect.COUNTER),
    creature("skimmer", "2U", 2, 2, Keyword.FLYING),
    creature("webspinner", "3G", 2, 4, Keyword.REACH),
    creature("runner", "R", 1, 1, Keyword.HASTE),
    creature("sentinel", "3WW", 4, 4, Keyword.FLYING | Keyword.VIGILANCE),
    creature("viper", "B", 1, 1, Keyword.DEATHTOUCH),
    creature("tusker", "3G", 3, 3, Keyword.TRAMPLE),
    creature("rampart", "1RR", 0, 8, Keyword.DEFENDER),
    creature("gang", "2R", 3, 2, Keyword.MENACE),
    creature("lancer", "1W", 2, 1, Keyword.FIRST_STRIKE),
    creature("duelist", "1W", 1, 1, Keyword.DOUBLE_STRIKE),
    creature("sprite", "W", 1, 1, Keyword.FLYING | Keyword.LIFELINK),
    creature("giant", "4GG", 6, 4),
    creature("drake", "4RR", 5, 5, Keyword.FLYING, CardEffect.PUMP),
    creature("tidecaller", "2U", 2, 2, effect=CardEffect.RETURN),
)
NAMES = tuple(card.name for card in CARDS)
CREATURES = frozenset(kind for kind, card in enumerate(CARDS) if card.type == Type.CREATURE)

DECKS = {
    "mirror": "20*crag+20*brute",
    "ramp": "12*crag+12*grove+18*sprout+18*brute",
    "keywords": "+".join(
        ["5*meadow", "5*shore", "2*mire", "6*crag", "6*grove", *(f"2*{name}" for name in NAMES[5:])]
    ),
}


def read_deck(text: str) -> list[int]:
    """A deck's name, or `20*crag+20*brute`, as places in the table, in the table's order."""
    if "*" not in text and text not in DECKS:
        raise unknown(
            "deck", text, list(DECKS), f"the decks are {', '.join(DECKS)}, or write 20*crag+20*brute"
        )
    deck = sorted(kind for each in DECKS.get(text, text).split("+") for kind in read_copies(each))
    if not DECK_LEAST <= len(deck) <= DECK_MOST:
        raise InputError(f"deck={text} has {len(deck)} cards: expected {DECK_LEAST} to {DECK_MOST}")
    return deck


def read_copies(text: str) -> list[int]:
    """`20*crag` as twenty places in the table."""
    count, _, name = text.partition("*")
    if not count.isdigit():
        raise InputError(f"deck: {text!r} cannot be read: write a number, *, and a card, such as 20*crag")
    if name not in NAMES:
        raise unknown("card", name, NAMES, f"the cards are {', '.join(NAMES)}")
    return [NAMES.index(name)] * min(int(count), DECK_MOST + 1)
