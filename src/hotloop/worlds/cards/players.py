"""Who can play a seat without a model: the specification of players.h and search.h.

A player sees what its observation shows and nothing else. The villain inside a step is given the same
straight from the game, which is quicker than to write an observation and read it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hotloop.core.exact_math import Draws
from hotloop.core.world import Plan
from hotloop.worlds.cards import turns
from hotloop.worlds.cards.observe import SHOWN_EFFECTS, RowLimits, permanents, relative, shown_cards, views
from hotloop.worlds.cards.state import (
    DECK,
    NONE,
    OBJECTS,
    Copy,
    Ending,
    GameOption,
    GameState,
    OptionKind,
    Zone,
)
from hotloop.worlds.cards.table import HARM_DAMAGE, CardEffect, Keyword

ME = OBJECTS
DRAWS = 2  # The first of an episode's random numbers that its villain uses
FEW_LIVES = 9  # From here on burning the opponent is worth a card
KEYWORDS = tuple(map(int, Keyword))
AIRBORNE = Keyword.FLYING | Keyword.REACH


@dataclass(slots=True, kw_only=True)
class Thing:
    """A card as a player sees it."""

    mine: bool
    zone: int
    power: int
    toughness: int
    value: int
    creature: bool
    effect: int
    keywords: int
    tapped: bool = False
    damage: int = 0

    @property
    def left(self) -> int:
        """The damage that would kill it."""
        return self.toughness - self.damage


@dataclass(slots=True, kw_only=True)
class SeatSight:
    """All that a scripted player looks at; objects are numbered as the observation's focus has them."""

    options: list[GameOption]
    things: dict[int, Thing]
    my_life: int
    their_life: int

    def creatures(self, *, mine: bool) -> Iterator[Thing]:
        for thing in self.things.values():
            if thing.mine == mine and thing.creature and thing.zone == Zone.BATTLEFIELD:
                yield thing


def sight_of(s: GameState, seat: int, limits: RowLimits) -> SeatSight:
    """What a seat sees, taken from the game."""
    things = {}
    for side in (seat, 1 - seat):
        rested = {id(copy) for copy in permanents(s, side)[: limits.permanents]}
        for place, copy in shown_cards(s, side, seat):
            number = place + DECK * (side != seat)
            things[number] = thing_of(copy, mine=side == seat, placed=id(copy) in rested)
    options = [GameOption(o.kind, relative(o.subject, seat), relative(o.object, seat)) for o in s.options]
    return SeatSight(
        options=options, things=things, my_life=s.sides[seat].life, their_life=s.sides[1 - seat].life
    )


def thing_of(copy: Copy, *, mine: bool, placed: bool) -> Thing:
    """Whether it is tapped or hurt is known where it has a row among the permanents."""
    row = copy.row
    return Thing(
        mine=mine,
        zone=copy.zone,
        power=copy.power,
        toughness=row.toughness,
        value=row.value,
        creature=copy.is_creature,
        effect=row.effect if row.effect in SHOWN_EFFECTS else CardEffect.NOTHING,
        keywords=row.keywords,
        tapped=placed and bool(copy.tapped),
        damage=copy.damage if placed else 0,
    )


def read_sight(row: Any, limits: RowLimits) -> SeatSight:
    """What a seat sees, read from its observation."""
    parts = views(row, limits)
    things: dict[int, Thing] = {}
    for offset, name in ((0, "agent"), (DECK, "opponent")):
        states = iter(parts[f"{name}_permanents"].tolist())
        for place, card in enumerate(parts[f"{name}_cards"].tolist()):
            if not card[-1]:
                continue
            thing = read_thing(card)
            if thing.zone == Zone.BATTLEFIELD and (state := next(states, None)) is not None:
                thing.tapped, thing.damage = bool(state[1]), round(state[2] * 10)
            things[offset + place] = thing
    shown = parts["actions"][:, -1] != 0
    options = [
        GameOption(int(kinds[:-1].argmax()), int(focus[0]), int(focus[1]))
        for kinds, focus in zip(parts["actions"][shown], parts["focus"][shown], strict=True)
    ]
    lives = [round(float(parts[name][0, 0]) * 20) for name in ("agent", "opponent")]
    return SeatSight(options=options, things=things, my_life=lives[0], their_life=lives[1])


def read_thing(row: list[float]) -> Thing:
    effects = [effect for effect, shown in zip(SHOWN_EFFECTS, row[13:17], strict=True) if shown]
    return Thing(
        mine=bool(row[6]),
        zone=row.index(1.0),
        power=round(row[7] * 10),
        toughness=round(row[8] * 10),
        value=round(row[9] * 10),
        creature=bool(row[11]),
        effect=effects[0] if effects else CardEffect.NOTHING,
        keywords=sum(keyword for keyword, has in zip(KEYWORDS, row[17:28], strict=True) if has),
    )


# The players.


def first(seen: SeatSight) -> int:
    return 0


def passive(seen: SeatSight) -> int:
    """What does nothing is the last option."""
    return len(seen.options) - 1


def simple(seen: SeatSight) -> int:
    """Play a land, cast the dearest, attack when it is safe, block when it trades well."""
    kind = seen.options[0].kind
    score = {OptionKind.ATTACK: attacking, OptionKind.BLOCK: blocking, OptionKind.TARGET: targeting}.get(
        OptionKind(kind), playing
    )
    worth = [0 if option.kind == OptionKind.PASS else score(seen, option) for option in seen.options]
    equals = [place for place, each in enumerate(worth) if each == max(worth)]
    return equals[rank(seen) % len(equals)] if kind == OptionKind.BLOCK else equals[0]


def rank(seen: SeatSight) -> int:
    """How many could block before the one that is asked: each takes another of equal attackers."""
    me = seen.options[0].subject
    return sum(
        thing.mine and thing.creature and thing.zone == Zone.BATTLEFIELD and not thing.tapped
        for number, thing in seen.things.items()
        if number < me
    )


def playing(seen: SeatSight, option: GameOption) -> int:
    """Above 0 is better than to pass."""
    if option.kind == OptionKind.LAND:
        return 1_000
    if option.kind != OptionKind.CAST:
        return -1
    thing = seen.things[option.subject]
    return 1 + thing.value if is_worth_it(seen, thing.effect) else -1


def is_worth_it(seen: SeatSight, effect: int) -> bool:
    theirs = list(seen.creatures(mine=False))
    if effect == CardEffect.COUNTER:
        return any(not thing.mine and thing.zone == Zone.STACK for thing in seen.things.values())
    if effect == CardEffect.HARM:
        return seen.their_life <= FEW_LIVES or any(thing.left <= HARM_DAMAGE for thing in theirs)
    return effect != CardEffect.RETURN or bool(theirs)


def targeting(seen: SeatSight, option: GameOption) -> int:
    effect = seen.things[option.subject].effect
    if option.object >= OBJECTS:
        if option.object == ME:
            return -1_000
        return 1_000 if seen.their_life <= HARM_DAMAGE else 1
    thing = seen.things[option.object]
    if thing.mine:
        return -10 - thing.value
    return 0 if effect == CardEffect.HARM and thing.left > HARM_DAMAGE else 10 + thing.value


def attacking(seen: SeatSight, option: GameOption) -> int:
    """Return above 0 if no blocker would kill it at a profit, or if there are few."""
    me = seen.things[option.subject]
    rested = [thing for thing in seen.creatures(mine=False) if not thing.tapped]
    able = [thing for thing in rested if not me.keywords & Keyword.FLYING or thing.keywords & AIRBORNE]
    feared = [thing for thing in able if kills(thing, me) and not trades(me, thing)]
    mine = sum(not thing.tapped for thing in seen.creatures(mine=True))
    return int(me.power > 0 and (not feared or mine > 2 * len(rested))) * 2 - 1


def trades(me: Thing, other: Thing) -> bool:
    """Whether I may die for it."""
    return kills(me, other) and other.value >= me.value


def kills(thing: Thing, other: Thing) -> bool:
    return thing.power > 0 and (thing.power >= other.left or bool(thing.keywords & Keyword.DEATHTOUCH))


def blocking(seen: SeatSight, option: GameOption) -> int:
    """A creature is given for a better one, and for an equal or none where life is short."""
    me, other = seen.things[option.subject], seen.things[option.object]
    strongest = sum(seen.things[each.object].power for each in seen.options if each.object != NONE)
    wins, dies = kills(me, other), kills(other, me)
    if not dies:
        return 30 + other.value if wins else 5
    pressed = seen.my_life <= (2 * strongest + 4 if wins else strongest)
    return 1 + wins if pressed or (wins and other.value > me.value) else -1


POLICIES: dict[str, Callable[[SeatSight], int]] = {"simple": simple, "passive": passive, "first": first}


def villains_choice(s: GameState, villain: str, limits: RowLimits) -> int:
    """What the villain inside a step chooses."""
    if villain == "random":
        return Draws(s.seed, DRAWS + s.decisions).below(0, len(s.options))
    return POLICIES[villain](sight_of(s, s.holder, limits))


class ScriptedPlayer:
    """One player of one env."""

    def __init__(self, plan: Plan, seen: Mapping[str, Any], policy: str = "simple") -> None:
        self.seen, self.policy = seen, POLICIES[policy]
        self.limits = RowLimits(actions=plan["num_actions"], permanents=plan["max_permanents"])

    def restart(self) -> None:
        """Nothing is remembered."""

    def choose(self) -> Sequence[int]:
        sight = read_sight(self.seen["observations"][0], self.limits)
        return [self.policy(sight) if sight.options else 0]


# Plays a land, casts the dearest it can, attacks when it is safe, blocks when it trades well.
Simple = partial(ScriptedPlayer, policy="simple")
Passive = partial(ScriptedPlayer, policy="passive")  # Never does anything
First = partial(ScriptedPlayer, policy="first")  # Takes the first option


# The first of an episode's random numbers that searches use, and as many for each decision.
SEARCH_DRAWS, LANES = 1 << 32, 4096


def search(s: GameState, limits: RowLimits, *, rollouts: int, max_decisions: int) -> int:
    """The option with the most points; the simple player's where it is among the best."""
    points = [0] * len(s.options)
    for turn in range(max(rollouts // len(points), 1)):
        dealt = imagine(s, s.holder, turn)
        for choice in range(len(points)):
            points[choice] += play_out(dealt.fork(), s.holder, choice, limits, max_decisions)
    usual = simple(sight_of(s, s.holder, limits))
    return usual if points[usual] == max(points) else points.index(max(points))


def imagine(s: GameState, seat: int, turn: int) -> GameState:
    """The game as its seat may think that it is."""
    draws = Draws(s.seed, SEARCH_DRAWS + s.decisions * LANES + turn)
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


def play_out(s: GameState, seat: int, choice: int, limits: RowLimits, max_decisions: int) -> int:
    """Play one option and then to the end: 2 for a win, 1 for a draw or a stopped game, 0 for a loss."""
    while s.ending == Ending.NONE and s.decisions < max_decisions:
        s.decisions += 1
        turns.take(s, choice)
        turns.advance(s, limits.actions)
        if s.ending != Ending.NONE:
            break
        choice = simple(sight_of(s, s.holder, limits))
    return 1 if s.winner == NONE else 2 * (s.winner == seat)


class Search(ScriptedPlayer):
    """One searching player of one env."""

    def __init__(self, plan: Plan, seen: Mapping[str, Any]) -> None:
        super().__init__(plan, seen)
        self.rollouts, self.max_decisions = plan["search_rollouts"], plan["max_decisions"]

    def choose(self) -> Sequence[int]:
        s: GameState = self.seen["twin"].state
        if s.ending != Ending.NONE:
            return [0]
        return [search(s, self.limits, rollouts=self.rollouts, max_decisions=self.max_decisions)]
