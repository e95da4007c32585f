"""Games of cards set up by hand, for examples of one rule each."""

from hotloop.worlds.cards import turns
from hotloop.worlds.cards.state import (
    DECK,
    HERO,
    NONE,
    SEATS,
    VILLAIN,
    Copy,
    Ending,
    GameState,
    OptionKind,
    PlayerSide,
    TurnStep,
    Wants,
    Zone,
)
from hotloop.worlds.cards.table import NAMES

MOST = 20


def game(
    *,
    mine: str = "",
    theirs: str = "",
    hand: str = "",
    their_hand: str = "",
    step: int = TurnStep.MAIN,
) -> GameState:
    """The hero's turn in some step, with named cards on battlefields and in hands, and a library each."""
    s = GameState(sides=[PlayerSide(), PlayerSide()], turn=3, step=step)
    for seat, field, held in ((HERO, mine, hand), (VILLAIN, theirs, their_hand)):
        place = seat * DECK
        for zone, names in ((Zone.BATTLEFIELD, field), (Zone.HAND, held), (Zone.LIBRARY, "crag " * 20)):
            for name in names.split():
                s.cards[place] = Copy(kind=NAMES.index(name), zone=zone)
                s.sides[seat].zone(zone).append(place)
                place += 1
    turns.advance(s, MOST)
    return s


def card(s: GameState, name: str, seat: int = HERO) -> int:
    """The first card of a name, in the order of a deck's list."""
    return next(n for n in sorted(s.cards) if n // DECK == seat and s.cards[n].row.name == name)


def offered(s: GameState) -> list[tuple[str, str]]:
    """Kind and card of every option."""
    return [
        (OptionKind(o.kind).name, s.cards[o.subject].row.name if o.subject != NONE else "") for o in s.options
    ]


def choose(s: GameState, kind: OptionKind, subject: int | None = None, to: int | None = None) -> None:
    """Take the first option that fits, and play on."""
    for place, option in enumerate(s.options):
        fits = subject is None or option.subject == subject
        if option.kind == kind and fits and (to is None or option.object == to):
            turns.take(s, place)
            turns.advance(s, MOST)
            return
    raise AssertionError(f"{kind.name} is not among {offered(s)}")


def pass_until(s: GameState, step: int, wants: int = Wants.PRIORITY) -> None:
    """Let everybody pass until a decision in a step, or until it is over."""
    while s.ending == Ending.NONE and (s.step, s.wants) != (step, wants):
        choose(s, OptionKind.PASS)


def settle(s: GameState) -> None:
    """Let everybody pass until the stack is empty."""
    while s.stack and s.ending == Ending.NONE:
        choose(s, OptionKind.PASS)


def fight(s: GameState, attackers: str, blocks: dict[str, str] | None = None) -> None:
    """Go through a combat in which the hero's named creatures attack and the villain's block as said."""
    wanted, answers = attackers.split(), blocks or {}
    turn = s.turn
    while s.ending == Ending.NONE and s.turn == turn and s.step < TurnStep.SECOND_MAIN:
        name = s.cards[s.subject].row.name if s.subject != NONE else ""
        if s.wants == Wants.ATTACKER and name in wanted:
            choose(s, OptionKind.ATTACK)
        elif s.wants == Wants.BLOCKER and name in answers:
            choose(s, OptionKind.BLOCK, s.subject, card(s, answers[name]))
        else:
            choose(s, OptionKind.PASS)


def zones(s: GameState, name: str, seat: int = HERO) -> str:
    return Zone(s.cards[card(s, name, seat)].zone).name


def lives(s: GameState) -> list[int]:
    return [s.sides[seat].life for seat in range(SEATS)]
