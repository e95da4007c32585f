"""The cards world in plain Python: its specification. cards.h must agree to the byte.

Two players, decks, a stack and combat. A step is one decision of the acting player; with a villain inside,
one of the hero's and all that follow of the villain's. Where this file and the native rules differ, this
file is right.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hotloop.core.exact_math import mix
from hotloop.core.world import Plan
from hotloop.worlds.cards import COUNTERS, turns
from hotloop.worlds.cards.observe import RowLimits, observation
from hotloop.worlds.cards.players import search, villains_choice
from hotloop.worlds.cards.state import HERO, NONE, SEATS, VILLAIN, Count, Ending, GameState, words

NOBODY = "none"  # The caller plays both seats


class Cards:
    """One env of the cards world."""

    def __init__(self, plan: Plan, out: Mapping[str, Any]) -> None:
        self.out = out
        self.decks: list[list[int]] = [plan["deck"], plan["villain_deck"]]
        self.limits = RowLimits(actions=plan["num_actions"], permanents=plan["max_permanents"])
        self.max_decisions: int = plan["max_decisions"]
        self.villain: str = plan["villain"]
        self.rollouts: int = plan["search_rollouts"]
        self.encode = bool(plan["encode"])
        self.chosen: Sequence[int] = ()
        self.counters: dict[str, int] = {}
        self.state = GameState()
        self.actor = HERO

    def restart(self, episode_seed: int) -> None:
        self.state = turns.begin(episode_seed, self.decks, self.state.counts)
        self.advance()
        self.play_on()
        self.observations()

    # The phases, in the order that __init__.py gives them.

    def rules(self) -> None:
        """Do what was chosen, and go on to the caller's next decision."""
        s, choice = self.state, self.chosen[0]
        self.actor = s.holder
        refused = s.ending == Ending.NONE and not 0 <= choice < len(s.options)
        if refused:
            s.decisions += 1
            s.counts[Count.REFUSED] += 1
        elif s.ending == Ending.NONE:
            self.decide(choice)
        self.play_on()
        self.out["refused"][...] = refused
        self.pay()

    def observations(self) -> None:
        s = self.state
        over = s.ending != Ending.NONE
        seat = (self.actor if over else s.holder) if self.villain == NOBODY else HERO
        if self.encode:
            self.out["observations"][0, :] = observation(s, seat, self.limits)
        self.out["masks"][0, :] = [place < len(s.options) for place in range(self.limits.actions)]
        self.out["seat"][...] = seat

    # What they are made of.

    def decide(self, choice: int) -> None:
        s = self.state
        s.seen[s.holder] = s.event_count
        s.decisions += 1
        s.counts[Count.DECISIONS] += 1
        turns.take(s, choice)
        self.advance()

    def advance(self) -> None:
        s = self.state
        turns.advance(s, self.limits.actions)
        s.counts[Count.OPTIONS_TRUNCATED] += s.truncated > 0
        most = max(len(side.battlefield) for side in s.sides)
        s.counts[Count.PERMANENTS_TRUNCATED] += most > self.limits.permanents

    def play_on(self) -> None:
        """Play until the caller must choose, or the game is over."""
        s = self.state
        while True:
            if s.ending == Ending.NONE and s.decisions >= self.max_decisions:
                s.ending, s.options = Ending.TIMEOUT, []
            if s.ending != Ending.NONE or self.villain == NOBODY or s.holder != VILLAIN:
                break
            self.decide(self.villains_choice())
        self.counters = dict(zip(COUNTERS, s.counts, strict=True))

    def villains_choice(self) -> int:
        s, limits = self.state, self.limits
        if self.villain == "search":
            return search(s, limits, rollouts=self.rollouts, max_decisions=self.max_decisions)
        return villains_choice(s, self.villain, limits)

    def pay(self) -> None:
        """Write rewards, flags and infos; rewards come at the end."""
        s, out = self.state, self.out
        over = s.ending != Ending.NONE
        rewards = [0.0] * SEATS
        if s.winner != NONE:
            rewards = [1.0 if seat == s.winner else -1.0 for seat in range(SEATS)]
        if over:
            s.counts[Count.LIFE + s.ending - 1] += 1
            self.counters = dict(zip(COUNTERS, s.counts, strict=True))
        out["seat_rewards"][:] = rewards
        out["rewards"][0] = rewards[self.actor if self.villain == NOBODY else HERO]
        out["terminals"][...] = over and s.ending != Ending.TIMEOUT
        out["truncations"][...] = s.ending == Ending.TIMEOUT
        out["won"][...] = (1 + rewards[HERO]) / 2
        out["began"][...] = s.first == HERO
        out["end_reason"][...] = s.ending
        out["turn_count"][...] = s.turn
        out["decision_count"][...] = s.decisions

    # What the batch asks of every twin.

    def digest(self) -> int:
        return mix(*words(self.state))

    def save(self) -> bytes:
        return f"{self.actor}\n{self.state.freeze()}".encode()

    def load(self, saved: bytes) -> None:
        actor, _, state = saved.decode().partition("\n")
        self.actor, self.state = int(actor), GameState.thaw(state)
