"""Mana, the stack, and what spells and abilities do; stack.h must agree."""

from collections.abc import Iterator, Sequence

from hotloop.worlds.cards.state import (
    NONE,
    OBJECTS,
    Copy,
    GameState,
    Happened,
    Item,
    StackEntry,
    Wants,
    Zone,
    move,
    seat_of,
)
from hotloop.worlds.cards.table import HARM_DAMAGE, RED, CardEffect, Keyword, Type

PUMP_COST = (0, [int(colour == RED) for colour in range(5)])

# Mana.


def sources(s: GameState, seat: int) -> Iterator[Copy]:
    """What can be tapped for mana, in battlefield order."""
    return (s.cards[card] for card in s.sides[seat].battlefield if s.cards[card].makes_mana)


def can_pay(s: GameState, seat: int, generic: int, coloured: Sequence[int]) -> bool:
    made = [copy.row.colour for copy in sources(s, seat)]
    enough = all(made.count(colour) >= count for colour, count in enumerate(coloured))
    return enough and len(made) >= generic + sum(coloured)


def pay(s: GameState, seat: int, generic: int, coloured: Sequence[int]) -> None:
    """Tap what is needed, colours first, and spend it."""
    missing, rest = list(coloured), generic
    for copy in sources(s, seat):
        if missing[copy.row.colour]:
            missing[copy.row.colour] -= 1
            tap_for_mana(s, seat, copy)
    for copy in sources(s, seat):
        if rest:
            rest -= 1
            tap_for_mana(s, seat, copy)
    spend(s.sides[seat].mana, generic, coloured)


def tap_for_mana(s: GameState, seat: int, copy: Copy) -> None:
    copy.tapped = 1
    s.sides[seat].mana[1 + copy.row.colour] += 1


def spend(mana: list[int], generic: int, coloured: Sequence[int]) -> None:
    """Colours from their own; generic mana from colourless first, then from the colours in their order."""
    for colour, count in enumerate(coloured):
        mana[1 + colour] -= count
    for place in range(6):
        paid = min(generic, mana[place])
        mana[place] -= paid
        generic -= paid


# Putting things on the stack.


def cast(s: GameState, card: int, target: int = NONE) -> None:
    """Pay for a card and put it on the stack."""
    seat, row = seat_of(card), s.cards[card].row
    pay(s, seat, row.generic, row.coloured)
    moves = moves_of(s, target)
    move(s, card, Zone.STACK)
    s.stack.append(StackEntry(item=Item.SPELL, card=card, seat=seat, target=target, target_moves=moves))
    s.tell(Happened.CAST, seat, card, target)


def activate(s: GameState, card: int) -> None:
    seat = seat_of(card)
    pay(s, seat, *PUMP_COST)
    s.stack.append(
        StackEntry(item=Item.ABILITY, card=card, seat=seat, target=card, target_moves=moves_of(s, card))
    )
    s.tell(Happened.ABILITY, seat, card)


def trigger(s: GameState, card: int, target: int) -> None:
    seat = seat_of(card)
    s.stack.append(
        StackEntry(item=Item.TRIGGER, card=card, seat=seat, target=target, target_moves=moves_of(s, target))
    )
    s.tell(Happened.TRIGGER, seat, card, target)


def moves_of(s: GameState, target: int) -> int:
    return s.cards[target].moves if 0 <= target < OBJECTS else 0


def targets(s: GameState, seat: int) -> list[int]:
    """What can be chosen: the opponent's first, players before cards, the stack from its top."""
    other = 1 - seat
    if s.item == Item.SPELL and s.cards[s.subject].row.effect == CardEffect.COUNTER:
        return [entry.card for entry in reversed(s.stack) if entry.item == Item.SPELL]
    creatures = [card for side in (other, seat) for card, _ in s.creatures(side)]
    return creatures if s.item == Item.TRIGGER else [OBJECTS + other, OBJECTS + seat, *creatures]


# Resolving.


def resolve(s: GameState) -> None:
    """Take the top of the stack and do what it says, unless its target has gone."""
    entry = s.stack.pop()
    row = s.cards[entry.card].row
    # A target that has moved is no longer what was chosen: a creature that left, or a spell that resolved.
    if 0 <= entry.target < OBJECTS and s.cards[entry.target].moves != entry.target_moves:
        s.tell(Happened.COUNTERED, entry.seat, entry.card)
    else:
        s.tell(Happened.RESOLVE, entry.seat, entry.card)
        do(s, entry)
    if entry.item != Item.SPELL:
        return
    if row.type != Type.CREATURE:
        move(s, entry.card, Zone.GRAVEYARD)
        return
    move(s, entry.card, Zone.BATTLEFIELD)
    if row.effect == CardEffect.RETURN:
        s.pending.append(entry.card)


def do(s: GameState, entry: StackEntry) -> None:
    effect = s.cards[entry.card].row.effect
    if entry.item == Item.ABILITY:
        s.cards[entry.target].boost += 1
    elif entry.item == Item.TRIGGER:
        s.tell(Happened.RETURN, entry.seat, entry.target)
        move(s, entry.target, Zone.HAND)
    elif effect == CardEffect.HARM:
        harm(s, entry.card, entry.target, HARM_DAMAGE)
    elif effect == CardEffect.COUNTER:
        counter(s, entry.target)


def counter(s: GameState, card: int) -> None:
    s.stack = [entry for entry in s.stack if entry.card != card or entry.item != Item.SPELL]
    s.tell(Happened.COUNTERED, seat_of(card), card)
    move(s, card, Zone.GRAVEYARD)


def harm(s: GameState, source: int, target: int, amount: int) -> None:
    """Deal damage to a player or a creature."""
    if amount <= 0:
        return
    by = s.cards[source]
    if target >= OBJECTS:
        s.sides[target - OBJECTS].life -= amount
    else:
        s.cards[target].damage += amount
        s.cards[target].doomed |= int(by.has(Keyword.DEATHTOUCH))
    if by.has(Keyword.LIFELINK):
        s.sides[seat_of(source)].life += amount
    s.tell(Happened.DAMAGE, seat_of(source), source, target, amount)


def ask_target(s: GameState, seat: int, item: int, subject: int) -> None:
    s.wants, s.holder, s.item, s.subject = Wants.TARGET, seat, item, subject
