"""A player that plays every option to the end, many times, and takes the one that won most.

It is given the game, and replaces what its seat does not see before it plays on: libraries and the other's
hand are dealt anew. From there on both seats are played by the simple player. search.h is the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hotloop.core.exact.random import Draws
from hotloop.core.world import Plan
from hotloop.worlds.cards import turns
from hotloop.worlds.cards.observe import Limits
from hotloop.worlds.cards.players import sight_of, simple
from hotloop.worlds.cards.state import NONE, Ending, State, Zone

DRAWS, LANES = 1 << 32, 4096
"""The first of an episode's random numbers that searches use, and as many for each decision."""


def search(s: State, limits: Limits, *, rollouts: int, max_decisions: int) -> int:
    """The option with the most points; the simple player's where it is among the best."""
    points = [0] * len(s.options)
    for turn in range(max(rollouts // len(points), 1)):
        dealt = imagine(s, s.holder, turn)
        for choice in range(len(points)):
            points[choice] += play_out(dealt.fork(), s.holder, choice, limits, max_decisions)
    usual = simple(sight_of(s, s.holder, limits))
    return usual if points[usual] == max(points) else points.index(max(points))


def imagine(s: State, seat: int, turn: int) -> State:
    """The game as its seat may think that it is."""
    draws = Draws(s.seed, DRAWS + s.decisions * LANES + turn)
    other = s.fork()
    mine, theirs = other.sides[seat], other.sides[1 - seat]
    mine.library = mixed(mine.library, draws)
    hidden = mixed([*theirs.hand, *theirs.library], draws)
    held = len(theirs.hand)
    theirs.hand, theirs.library = hidden[:held], hidden[held:]
    for place, card in enumerate(hidden):
        other.cards[card].zone = Zone.HAND if place < held else Zone.LIBRARY
    return other


def mixed(cards: list[int], draws: Draws) -> list[int]:
    """Cards put in order and shuffled."""
    return turns.shuffled(sorted(cards), draws)


def play_out(s: State, seat: int, choice: int, limits: Limits, max_decisions: int) -> int:
    """Play one option and then to the end: 2 for a win, 1 for a draw or a stopped game, 0 for a loss."""
    while s.ending == Ending.NONE and s.decisions < max_decisions:
        s.decisions += 1
        turns.take(s, choice)
        turns.advance(s, limits.actions)
        if s.ending != Ending.NONE:
            break
        choice = simple(sight_of(s, s.holder, limits))
    return 1 if s.winner == NONE else 2 * (s.winner == seat)


class Search:
    """One searching player of one env."""

    def __init__(self, plan: Plan, seen: Mapping[str, Any]) -> None:
        self.seen = seen
        self.limits = Limits(actions=plan["num_actions"], permanents=plan["max_permanents"])
        self.rollouts, self.max_decisions = plan["search_rollouts"], plan["max_decisions"]

    def restart(self) -> None:
        """Nothing is remembered."""

    def choose(self) -> Sequence[int]:
        s: State = self.seen["twin"].state
        if s.ending != Ending.NONE:
            return [0]
        return [search(s, self.limits, rollouts=self.rollouts, max_decisions=self.max_decisions)]
