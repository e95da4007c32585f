"""The turn, combat, priority, and the options of every decision; turns.h and combat.h must agree."""

from collections.abc import Iterator

from hotloop.core.exact_math import Draws
from hotloop.worlds.cards import COUNTERS, stack
from hotloop.worlds.cards.stack import harm
from hotloop.worlds.cards.state import (
    DECK,
    HAND,
    NONE,
    OBJECTS,
    SEATS,
    Copy,
    Ending,
    GameOption,
    GameState,
    Happened,
    Item,
    OptionKind,
    PlayerSide,
    TurnStep,
    Wants,
    Zone,
    draw,
    move,
    seat_of,
)
from hotloop.worlds.cards.table import CardEffect, Keyword, Type

AIRBORNE = Keyword.FLYING | Keyword.REACH
STRIKES = Keyword.FIRST_STRIKE | Keyword.DOUBLE_STRIKE


def may_attack(copy: Copy) -> bool:
    rested = not copy.sick or copy.has(Keyword.HASTE)
    return copy.is_creature and not copy.tapped and rested and not copy.has(Keyword.DEFENDER)


def ask_next(s: GameState) -> None:
    """Ask for the next creature that may attack or block, or end the declaration."""
    attacking = s.step == TurnStep.ATTACKERS
    seat = s.active if attacking else 1 - s.active
    battlefield = s.sides[seat].battlefield
    while s.cursor < len(battlefield):
        card, copy = battlefield[s.cursor], s.cards[battlefield[s.cursor]]
        s.cursor += 1
        if may_attack(copy) if attacking else copy.is_creature and not copy.tapped:
            s.wants = Wants.ATTACKER if attacking else Wants.BLOCKER
            s.holder, s.subject = seat, card
            return
    s.cursor, s.holder = NONE, s.active
    if not attacking:
        settle_blocks(s)


def attack(s: GameState, card: int) -> None:
    copy = s.cards[card]
    copy.attacking = 1
    copy.tapped = int(not copy.has(Keyword.VIGILANCE))
    s.attackers.append(card)
    s.tell(Happened.ATTACK, s.active, card)


def still_attacking(s: GameState) -> list[int]:
    return [card for card in s.attackers if s.cards[card].attacking]


def blockers_of(s: GameState, attacker: int) -> list[int]:
    return [card for card, copy in s.creatures(1 - s.active) if copy.blocking == attacker]


def settle_blocks(s: GameState) -> None:
    """Blocks are what was chosen, but one creature alone does not block menace."""
    for attacker in still_attacking(s):
        blockers = blockers_of(s, attacker)
        if len(blockers) == 1 and s.cards[attacker].has(Keyword.MENACE):
            s.cards[blockers[0]].blocking = NONE
            continue
        s.cards[attacker].blocked = int(bool(blockers))
        for blocker in blockers:
            s.tell(Happened.BLOCK, 1 - s.active, blocker, attacker)


def deal_damage(s: GameState) -> None:
    """One pass; the first is for those that strike first, where there are any."""
    blockers = [card for card, copy in s.creatures(1 - s.active) if copy.blocking != NONE]
    fighters = [*still_attacking(s), *blockers]
    if s.second_pass:
        s.second_pass = 0
        strike(s, [card for card in fighters if not s.cards[card].has(Keyword.FIRST_STRIKE)])
        return
    quick = [card for card in fighters if s.cards[card].has(STRIKES)]
    s.second_pass = int(bool(quick))
    strike(s, quick or fighters)


def strike(s: GameState, fighters: list[int]) -> None:
    for card in fighters:
        copy = s.cards[card]
        if not copy.attacking:
            if s.cards[copy.blocking].attacking:
                harm(s, card, copy.blocking, copy.power)
        elif copy.blocked:
            assign(s, card)
        else:
            harm(s, card, OBJECTS + 1 - s.active, copy.power)


def assign(s: GameState, attacker: int) -> None:
    """Enough to kill each blocker in turn; what is left goes to the last, or tramples over them."""
    copy, blockers = s.cards[attacker], blockers_of(s, attacker)
    left, tramples = copy.power, copy.has(Keyword.TRAMPLE)
    for place, blocker in enumerate(blockers):
        victim = s.cards[blocker]
        needed = 1 if copy.has(Keyword.DEATHTOUCH) else max(victim.row.toughness - victim.damage, 0)
        last = place == len(blockers) - 1 and not tramples
        given = left if last else min(left, needed)
        harm(s, attacker, blocker, given)
        left -= given
    if tramples:
        harm(s, attacker, OBJECTS + 1 - s.active, left)


def end_combat(s: GameState) -> None:
    s.attackers, s.second_pass = [], 0
    for side in s.sides:
        for card in side.battlefield:
            copy = s.cards[card]
            copy.attacking = copy.blocked = 0
            copy.blocking = NONE


MAINS = (TurnStep.MAIN, TurnStep.SECOND_MAIN)
SHUFFLES, COIN = 0, 1  # Which of an episode's random numbers a beginning uses


def begin(seed: int, decks: list[list[int]], counts: list[int] | None = None) -> GameState:
    """Shuffle, toss for who begins, and deal; the game has come to its first decision."""
    s = GameState(seed=seed, sides=[PlayerSide() for _ in range(SEATS)], counts=counts or [0] * len(COUNTERS))
    for seat, deck in enumerate(decks):
        s.cards |= {seat * DECK + place: Copy(kind=kind) for place, kind in enumerate(deck)}
        cards = [seat * DECK + place for place in range(len(deck))]
        s.sides[seat].library = shuffled(cards, Draws(seed, SHUFFLES))
    s.first = s.active = s.holder = Draws(seed, COIN).below(0, SEATS)
    for seat in range(SEATS):
        for card in reversed(s.sides[seat].library[-HAND:]):
            move(s, card, Zone.HAND)
    enter(s, TurnStep.UNTAP)
    return s


def shuffled(cards: list[int], draws: Draws) -> list[int]:
    """Cards of one seat, each place drawn by a number of its own."""
    cards = list(cards)
    for last in range(len(cards) - 1, 0, -1):
        first = seat_of(cards[0]) * DECK
        other = draws.below(first + last, last + 1)
        cards[last], cards[other] = cards[other], cards[last]
    return cards


def advance(s: GameState, most: int) -> None:
    """Play on to the next decision that has more than one option, or to the end."""
    while s.ending == Ending.NONE:
        if s.wants == Wants.NOTHING:
            proceed(s)
            continue
        listed = list(options(s))
        s.truncated = max(len(listed) - most, 0)
        s.options = [*listed[: most - 1], listed[-1]] if s.truncated else listed
        if len(s.options) > 1:
            return
        take(s, 0)
    s.options, s.truncated = [], 0


def proceed(s: GameState) -> None:
    """What comes next by itself: a declaration, or priority."""
    if s.cursor != NONE:
        ask_next(s)
        return
    check(s)
    if s.ending != Ending.NONE:
        return
    if s.pending:
        mine = [card for card in s.pending if card // DECK == s.active]
        card = (mine or s.pending)[0]
        s.pending.remove(card)
        stack.ask_target(s, card // DECK, Item.TRIGGER, card)
        if not stack.targets(s, s.holder):
            s.wants, s.holder = Wants.NOTHING, s.active
    elif s.passes < SEATS:
        s.wants = Wants.PRIORITY
    elif s.stack:
        stack.resolve(s)
        s.passes, s.holder = 0, s.active
    else:
        end_step(s)


def check(s: GameState) -> None:
    """State-based actions, until nothing changes."""
    while True:
        if any(side.life <= 0 or side.drew_nothing for side in s.sides):
            finish(s)
            return
        dying = [
            card
            for seat in range(SEATS)
            for card, copy in s.creatures(seat)
            if copy.doomed or copy.damage >= copy.row.toughness
        ]
        for card in dying:
            s.tell(Happened.DIE, card // DECK, card)
            move(s, card, Zone.GRAVEYARD)
        if not dying:
            return


def finish(s: GameState) -> None:
    lost = [side.life <= 0 or bool(side.drew_nothing) for side in s.sides]
    if all(lost):
        s.ending = Ending.DRAW
        return
    loser = s.sides[lost.index(True)]
    s.winner = lost.index(False)
    s.ending = Ending.LIFE if loser.life <= 0 else Ending.LIBRARY


# Steps.


def end_step(s: GameState) -> None:
    """Mana empties; a combat without attackers is over after their declaration."""
    for side in s.sides:
        side.mana = [0] * 6
    if s.step == TurnStep.DAMAGE and s.second_pass:
        enter(s, TurnStep.DAMAGE)
    elif s.step == TurnStep.ATTACKERS and not s.attackers:
        enter(s, TurnStep.END_COMBAT)
    else:
        enter(s, s.step + 1)


def enter(s: GameState, step: int) -> None:
    """Begin a step; untap and cleanup are over at once, for no player has priority in them."""
    s.step, s.passes, s.holder = step, 0, s.active
    if step == TurnStep.UNTAP:
        s.turn += 1
        side = s.sides[s.active]
        side.land_played = 0
        for card in side.battlefield:
            s.cards[card].tapped = s.cards[card].sick = 0
        enter(s, TurnStep.UPKEEP)
    elif step == TurnStep.DRAW and s.turn > 1:
        draw(s, s.active)
    elif step in (TurnStep.ATTACKERS, TurnStep.BLOCKERS):
        s.cursor = 0
    elif step == TurnStep.DAMAGE:
        deal_damage(s)
    elif step == TurnStep.SECOND_MAIN:
        end_combat(s)
    elif step == TurnStep.CLEANUP:
        clean_up(s)
        s.active = 1 - s.active
        enter(s, TurnStep.UNTAP)


def clean_up(s: GameState) -> None:
    for side in s.sides:
        for card in side.battlefield:
            copy = s.cards[card]
            copy.damage = copy.boost = copy.doomed = 0


# Decisions.


def options(s: GameState) -> Iterator[GameOption]:
    """Everything that can be chosen; what does nothing comes last."""
    if s.wants == Wants.PRIORITY:
        yield from playable(s, s.holder)
        yield GameOption(OptionKind.PASS)
    elif s.wants == Wants.ATTACKER:
        yield GameOption(OptionKind.ATTACK, s.subject)
        yield GameOption(OptionKind.PASS, s.subject)
    elif s.wants == Wants.BLOCKER:
        for attacker in still_attacking(s):
            if not s.cards[attacker].has(Keyword.FLYING) or s.cards[s.subject].has(AIRBORNE):
                yield GameOption(OptionKind.BLOCK, s.subject, attacker)
        yield GameOption(OptionKind.PASS, s.subject)
    else:
        yield from (GameOption(OptionKind.TARGET, s.subject, target) for target in stack.targets(s, s.holder))


def playable(s: GameState, seat: int) -> Iterator[GameOption]:
    """Cards in hand order, then abilities in battlefield order."""
    slow = seat == s.active and s.step in MAINS and not s.stack
    for card in s.sides[seat].hand:
        row = s.cards[card].row
        if row.type == Type.LAND:
            if slow and not s.sides[seat].land_played:
                yield GameOption(OptionKind.LAND, card)
        elif may_cast(s, card, slow) and stack.can_pay(s, seat, row.generic, row.coloured):
            yield GameOption(OptionKind.CAST, card)
    for card in s.sides[seat].battlefield:
        if s.cards[card].row.effect == CardEffect.PUMP and stack.can_pay(s, seat, *stack.PUMP_COST):
            yield GameOption(OptionKind.ABILITY, card)


def may_cast(s: GameState, card: int, slow: bool) -> bool:
    row = s.cards[card].row
    if row.effect == CardEffect.COUNTER:
        return any(entry.item == Item.SPELL for entry in s.stack)
    return slow or row.type == Type.INSTANT


def take(s: GameState, choice: int) -> None:
    """Do what an option says."""
    option = s.options[choice]
    wanted, s.wants = s.wants, Wants.NOTHING
    if wanted == Wants.PRIORITY:
        take_priority(s, option)
    elif option.kind == OptionKind.ATTACK:
        attack(s, option.subject)
    elif option.kind == OptionKind.BLOCK:
        s.cards[option.subject].blocking = option.object
    elif option.kind == OptionKind.TARGET:
        if s.item == Item.TRIGGER:
            stack.trigger(s, option.subject, option.object)
        else:
            stack.cast(s, option.subject, option.object)
        s.passes, s.holder = 0, s.active


def take_priority(s: GameState, option: GameOption) -> None:
    if option.kind == OptionKind.PASS:
        s.passes += 1
        s.holder = 1 - s.holder
        return
    effect = s.cards[option.subject].row.effect
    if option.kind == OptionKind.CAST and effect in (CardEffect.HARM, CardEffect.COUNTER):
        stack.ask_target(s, s.holder, Item.SPELL, option.subject)
        return
    if option.kind == OptionKind.LAND:
        s.sides[s.holder].land_played = 1
        move(s, option.subject, Zone.BATTLEFIELD)
        s.tell(Happened.LAND, s.holder, option.subject)
    elif option.kind == OptionKind.CAST:
        stack.cast(s, option.subject)
    else:
        stack.activate(s, option.subject)
    s.passes, s.holder = 0, s.active
