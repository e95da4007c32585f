"""Attackers, blockers and combat damage; combat.h must agree."""

from collections.abc import Iterator

from hotloop.worlds.cards.stack import harm
from hotloop.worlds.cards.state import NONE, OBJECTS, Copy, Happened, State, Step, Wants
from hotloop.worlds.cards.table import Keyword

AIRBORNE = Keyword.FLYING | Keyword.REACH
STRIKES = Keyword.FIRST_STRIKE | Keyword.DOUBLE_STRIKE


def may_attack(copy: Copy) -> bool:
    rested = not copy.sick or copy.has(Keyword.HASTE)
    return copy.is_creature and not copy.tapped and rested and not copy.has(Keyword.DEFENDER)


def can_block(blocker: Copy, attacker: Copy) -> bool:
    return not attacker.has(Keyword.FLYING) or blocker.has(AIRBORNE)


def ask_next(s: State) -> None:
    """Ask for the next creature that may attack or block, or end the declaration."""
    attacking = s.step == Step.ATTACKERS
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


def attack(s: State, card: int) -> None:
    copy = s.cards[card]
    copy.attacking = 1
    copy.tapped = int(not copy.has(Keyword.VIGILANCE))
    s.attackers.append(card)
    s.tell(Happened.ATTACK, s.active, card)


def still_attacking(s: State) -> list[int]:
    return [card for card in s.attackers if s.cards[card].attacking]


def blockers_of(s: State, attacker: int) -> list[int]:
    return [card for card, copy in s.creatures(1 - s.active) if copy.blocking == attacker]


def settle_blocks(s: State) -> None:
    """Blocks are what was chosen, but one creature alone does not block menace."""
    for attacker in still_attacking(s):
        blockers = blockers_of(s, attacker)
        if len(blockers) == 1 and s.cards[attacker].has(Keyword.MENACE):
            s.cards[blockers[0]].blocking = NONE
            continue
        s.cards[attacker].blocked = int(bool(blockers))
        for blocker in blockers:
            s.tell(Happened.BLOCK, 1 - s.active, blocker, attacker)


def deal_damage(s: State) -> None:
    """One pass; the first is for those that strike first, where there are any."""
    fighters = [*still_attacking(s), *(card for card, _ in fighting_blockers(s))]
    if s.second_pass:
        s.second_pass = 0
        strike(s, [card for card in fighters if not s.cards[card].has(Keyword.FIRST_STRIKE)])
        return
    quick = [card for card in fighters if s.cards[card].has(STRIKES)]
    s.second_pass = int(bool(quick))
    strike(s, quick or fighters)


def fighting_blockers(s: State) -> Iterator[tuple[int, Copy]]:
    return ((card, copy) for card, copy in s.creatures(1 - s.active) if copy.blocking != NONE)


def strike(s: State, fighters: list[int]) -> None:
    for card in fighters:
        copy = s.cards[card]
        if not copy.attacking:
            if s.cards[copy.blocking].attacking:
                harm(s, card, copy.blocking, copy.power)
        elif copy.blocked:
            assign(s, card)
        else:
            harm(s, card, OBJECTS + 1 - s.active, copy.power)


def assign(s: State, attacker: int) -> None:
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


def end_combat(s: State) -> None:
    s.attackers, s.second_pass = [], 0
    for side in s.sides:
        for card in side.battlefield:
            copy = s.cards[card]
            copy.attacking = copy.blocked = 0
            copy.blocking = NONE
