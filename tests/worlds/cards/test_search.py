"""The player that searches: it is its twin, it does not look at what is hidden, and it wins."""

import numpy as np
import pytest

import hotloop
from hotloop.core.exact_math import Draws
from hotloop.stats.summary import wilson_interval
from hotloop.worlds.cards import turns
from hotloop.worlds.cards.observe import RowLimits
from hotloop.worlds.cards.players import imagine, search
from hotloop.worlds.cards.state import Ending, GameState, Zone
from hotloop.worlds.cards.table import read_deck

LIMITS = RowLimits(actions=20, permanents=30)


def midgame(seed: int, decisions: int = 40) -> GameState:
    s = turns.begin(seed, [read_deck("keywords")] * 2)
    turns.advance(s, LIMITS.actions)
    while s.ending == Ending.NONE and s.decisions < decisions:
        s.decisions += 1
        turns.take(s, Draws(seed, 100 + s.decisions).below(0, len(s.options)))
        turns.advance(s, LIMITS.actions)
    return s


def swapped(s: GameState) -> GameState:
    """The same game with another hand of the opponent, and another order of every library."""
    other = GameState.thaw(s.freeze())
    theirs, mine = other.sides[1 - s.holder], other.sides[s.holder]
    hidden = [*theirs.library, *theirs.hand]
    theirs.hand, theirs.library = hidden[: len(theirs.hand)], hidden[len(theirs.hand) :]
    for card in hidden:
        other.cards[card].zone = Zone.HAND if card in theirs.hand else Zone.LIBRARY
    mine.library.reverse()
    return other


@pytest.mark.parametrize("seed", range(3))
def test_what_a_seat_does_not_see_decides_nothing(seed: int) -> None:
    s = midgame(seed)
    if s.ending != Ending.NONE:
        s = midgame(seed, 20)
    choices = [search(each, LIMITS, rollouts=6, max_decisions=90) for each in (s, swapped(s))]
    assert choices[0] == choices[1]
    assert imagine(s, s.holder, 0).sides == imagine(swapped(s), s.holder, 0).sides


def test_what_is_imagined_has_the_same_cards_and_another_order() -> None:
    s = midgame(5, 30)
    seat = s.holder
    one, two = (imagine(s, seat, turn) for turn in range(2))
    assert one.sides[seat].library != two.sides[seat].library
    for other in (one, two):
        assert other.sides[seat].hand == s.sides[seat].hand
        for mine, theirs in zip(s.sides, other.sides, strict=True):
            assert len(mine.hand) == len(theirs.hand)
            assert sorted(mine.hand + mine.library) == sorted(theirs.hand + theirs.library)
        assert all(other.cards[card].zone == Zone.HAND for side in other.sides for card in side.hand)


@pytest.mark.parametrize("deck", ["ramp", "keywords"])
def test_native_equals_the_twin(deck: str) -> None:
    batches = [
        hotloop.make(f"cards/{deck}", num_envs=2, impl=impl, villain="search", search_rollouts=2, seed=3)
        for impl in ("native", "reference")
    ]
    for batch in batches:
        batch.reset()
    for _ in range(3):
        chosen = [batch.choose("search").copy() for batch in batches]
        assert chosen[0].tolist() == chosen[1].tolist()
        for batch in batches:
            batch.step(chosen[0])
        assert batches[0].digest().tolist() == batches[1].digest().tolist()


def share_won(deck: str, games: int, rollouts: int) -> tuple[float, float]:
    """Wilson's interval of the games that search wins against simple."""
    envs = 64
    batch = hotloop.make(
        f"cards/{deck}", num_envs=envs, villain="simple", search_rollouts=rollouts, encode=False, seed=5
    )
    batch.reset()
    won: list[float] = []
    left = np.full(envs, games // envs)
    while left.any():
        batch.step(batch.choose("search"))
        over = np.flatnonzero((batch.terminals | batch.truncations) & (left > 0))
        left[over] -= 1
        won.extend(batch.infos["won"][over].tolist())
    return wilson_interval(sum(won), len(won))


def test_it_beats_the_simple_player() -> None:
    assert share_won("ramp", 64, 32)[0] > 0.5


@pytest.mark.long
@pytest.mark.parametrize("deck", ["mirror", "ramp", "keywords"])
def test_it_beats_the_simple_player_with_every_deck(deck: str) -> None:
    assert share_won(deck, 960, 64)[0] > 0.5
