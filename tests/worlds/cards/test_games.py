"""Whole games: what holds after every decision, what is hidden, and what comes of many."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hotloop
from hotloop.core.errors import InputError
from hotloop.core.exact_math import Draws
from hotloop.envs.batch import Batch
from hotloop.worlds.cards import turns
from hotloop.worlds.cards.observe import RowLimits, observation
from hotloop.worlds.cards.players import POLICIES, sight_of
from hotloop.worlds.cards.state import (
    DECK,
    LIFE,
    OBJECTS,
    SEATS,
    Ending,
    GameOption,
    GameState,
    Happened,
    Zone,
)
from hotloop.worlds.cards.table import DECKS, Keyword, read_deck

LIMITS = RowLimits(actions=20, permanents=30)
decks = pytest.mark.parametrize("deck", DECKS)


def begin(deck: str, seed: int) -> GameState:
    s = turns.begin(seed, [read_deck(deck)] * 2)
    turns.advance(s, LIMITS.actions)
    return s


def decide(s: GameState, player: str) -> None:
    """One decision, by the draws of the game itself where the player is random."""
    chosen = Draws(s.seed, 100 + s.decisions).below(0, len(s.options))
    if player != "random":
        chosen = POLICIES[player](sight_of(s, s.holder, LIMITS))
    s.decisions += 1
    turns.take(s, chosen)
    turns.advance(s, LIMITS.actions)


def check_invariants(s: GameState, sizes: list[int]) -> None:
    for seat, side in enumerate(s.sides):
        held = [*side.library, *side.hand, *side.battlefield, *side.graveyard]
        stacked = [entry.card for entry in s.stack if entry.item == 0 and entry.card // DECK == seat]
        assert sorted([*held, *stacked]) == [seat * DECK + place for place in range(sizes[seat])]
        assert all(s.cards[n].zone == zone for zone in range(4) for n in side.zone(zone))
        assert all(s.cards[n].zone == Zone.STACK for n in stacked)
        assert side.mana == [0] * 6
    assert all(0 <= copy.damage and 0 <= copy.boost for copy in s.cards.values())
    assert s.ending != Ending.NONE or len(s.options) > 1


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 2**64 - 1),
    deck=st.sampled_from(list(DECKS)),
    player=st.sampled_from(["random", "simple"]),
)
def test_cards_are_conserved_and_life_is_what_was_dealt(seed: int, deck: str, player: str) -> None:
    s = begin(deck, seed)
    sizes = [len(read_deck(deck))] * SEATS
    lives, told = [LIFE] * SEATS, 0
    for _ in range(150):
        if s.ending != Ending.NONE:
            break
        decide(s, player)
        check_invariants(s, sizes)
        fresh = s.event_count - told
        assert fresh <= len(s.events), "more happened between two decisions than is kept"
        for what, whose, subject, hurt, amount, _ in s.events[len(s.events) - fresh :]:
            if what == Happened.DAMAGE:
                if hurt >= OBJECTS:
                    lives[hurt - OBJECTS] -= amount
                lives[whose] += amount if s.cards[subject].has(Keyword.LIFELINK) else 0
        told = s.event_count
        assert [side.life for side in s.sides] == lives


def test_the_stack_is_empty_at_every_turns_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = []
    clean_up = turns.clean_up
    monkeypatch.setattr(turns, "clean_up", lambda s: (ends.append(len(s.stack)), clean_up(s)))
    for seed in range(3):
        s = begin("keywords", seed)
        while s.ending == Ending.NONE:
            decide(s, "random")
    assert len(ends) > 20
    assert not any(ends)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**64 - 1), moves=st.integers(1, 60))
def test_the_opponents_hand_is_in_no_byte(seed: int, moves: int) -> None:
    s = begin("keywords", seed)
    for _ in range(moves):
        if s.ending == Ending.NONE:
            decide(s, "random")
    for seat in range(SEATS):
        before = observation(s, seat, LIMITS)
        other = GameState.thaw(s.freeze())
        side = other.sides[1 - seat]
        for place, held in enumerate(list(side.hand)[: len(side.library)]):
            swapped = side.library[place]
            side.hand[place], side.library[place] = swapped, held
            other.cards[held].zone, other.cards[swapped].zone = Zone.LIBRARY, Zone.HAND
        if s.holder != seat:
            other.options = [GameOption(o.kind, o.subject, o.object) for o in s.options]
        assert observation(other, seat, LIMITS).tobytes() == before.tobytes()


def play(batch: Batch, player: str, games: int) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    """The infos of finished games, an equal share of every env's."""
    batch.reset()
    rows: dict[str, list[float]] = {name: [] for name in ("won", "began", "end_reason", "decision_count")}
    left = np.full(batch.spec.num_envs, games // batch.spec.num_envs)
    while left.any():
        batch.step(batch.choose(player))
        over = np.flatnonzero((batch.terminals | batch.truncations) & (left > 0))
        left[over] -= 1
        for name, row in rows.items():
            row.extend(batch.infos[name][over].tolist())
    return {name: np.array(row) for name, row in rows.items()}


def test_a_thousand_games_are_a_thousand_shuffles() -> None:
    batch = hotloop.make("cards/mirror", num_envs=100)
    seen = set()
    for _ in range(10):
        batch.reset()
        seen |= set(batch.digest().tolist())
    assert len(seen) == 1_000


def test_neither_seat_is_much_better_and_sides_are_alike() -> None:
    games = play(hotloop.make("cards/mirror", num_envs=100, encode=False), "random", 2_000)
    assert abs(games["won"].mean() - 0.5) < 0.04
    began = games["began"].astype(bool)
    assert 0.4 < games["won"][began].mean() < 0.6
    forth = play(hotloop.make("cards/mirror", num_envs=100, villain="random"), "simple", 1_000)
    back = play(hotloop.make("cards/mirror", num_envs=100, villain="simple"), "random", 1_000)
    assert abs(forth["won"].mean() + back["won"].mean() - 1) < 0.06


@decks
def test_simple_beats_random(deck: str) -> None:
    won = play(hotloop.make(f"cards/{deck}", num_envs=100), "simple", 1_000)["won"].mean()
    assert won > (0.8 if deck != "ramp" else 0.72)


@decks
def test_hardly_anything_is_truncated(deck: str) -> None:
    batch = hotloop.make(f"cards/{deck}", num_envs=250, encode=False)
    play(batch, "random", 10_000)
    counted = batch.counters
    cut = counted["coverage.options_truncated"] + counted["coverage.permanents_truncated"]
    assert cut <= counted["coverage.decisions_made"] * (0.001 if deck == "keywords" else 0)
    assert counted["coverage.ended_by_timeout"] == 0


@pytest.mark.parametrize("player", ["simple", "passive", "first", "search"])
def test_a_villain_inside_plays_as_the_player_does_outside(player: str) -> None:
    inside = hotloop.make("cards/keywords", num_envs=4, villain=player, search_rollouts=8)
    outside = hotloop.make("cards/keywords", num_envs=4, villain="none", search_rollouts=8)
    inside.reset(seeds=[1, 2, 3, 4])
    outside.reset(seeds=[1, 2, 3, 4])
    for _ in range(60):
        while (waits := outside.infos["seat"] == 1).any():
            for env in np.flatnonzero(waits).tolist():
                answer_for_the_villain(outside, env, player)
        assert inside.observations.tobytes() == outside.observations.tobytes()
        if (inside.terminals | inside.truncations).any():
            return
        actions = inside.choose("random").copy()
        inside.step(actions)
        step_some(outside, range(4), actions)
        if (inside.terminals | inside.truncations | outside.terminals).any():
            return


def answer_for_the_villain(batch: Batch, env: int, player: str) -> None:
    step_some(batch, [env], batch.choose(player).copy())


def step_some(batch: Batch, envs: object, actions: np.ndarray) -> None:  # type: ignore[type-arg]
    """Step some envs; the others are put back as they were."""
    kept = {env: batch.save(env) for env in range(batch.spec.num_envs) if env not in envs}  # type: ignore[operator]
    batch.step(actions)
    for env, saved in kept.items():
        batch.load(env, saved)


@pytest.mark.parametrize("impl", ["native", "reference"])
def test_an_option_that_does_not_exist_is_counted_and_changes_nothing(impl: str) -> None:
    batch = hotloop.make("cards/mirror", num_envs=2, impl=impl)
    batch.reset()
    before = batch.observations.copy()
    batch.step(np.array([[19], [-1]], np.int32))
    assert batch.observations.tobytes() == before.tobytes()
    assert batch.infos["refused"].all()
    assert batch.counters["coverage.options_refused"] == 2
    strict = hotloop.make("cards/mirror", num_envs=1, impl=impl, strict=True)
    strict.reset()
    with pytest.raises(InputError, match="action 20"):
        strict.step(np.array([[20]], np.int32))


@pytest.mark.parametrize(
    ("deck", "message"),
    [
        ("mirrr", "did you mean mirror"),
        ("20*crag+19*brute", "39 cards: expected 40 to 60"),
        ("61*crag", "61 cards"),
        ("20*crag+20*brut", "did you mean brute"),
        ("x*crag", "cannot be read"),
    ],
)
def test_a_deck_that_cannot_be_played_is_refused(deck: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        hotloop.make("cards/mirror", deck=deck)
