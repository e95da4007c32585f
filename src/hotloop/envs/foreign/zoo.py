"""PettingZoo's envs: all agents at once (parallel), or one after another (AEC); and games of two seats.

A game may be an env of any kind: seats tell which of the two is to move, and which one won the last game.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.core.process import lifeline
from hotloop.envs.foreign.inside import (
    BROKEN,
    Pick,
    Sample,
    from_space,
    in_span,
    mask_in,
    picks,
    raised,
    settled,
)
from hotloop.envs.foreign.single import SingleSubject
from hotloop.envs.foreign.subject import (
    NAMES,
    OneEnvSubject,
    plain_action,
    seeded,
    split_reset,
    to_plain,
)
from hotloop.envs.spec import Spec
from hotloop.envs.subject import Proxy, Subject


class ZooSubject(OneEnvSubject):
    """An env with agents that have names, each with actions of its own to draw."""

    def __init__(self, env: Any, spec: Spec, **how: Any) -> None:
        super().__init__(env, spec, **how)
        self._samples: dict[str, Sample] = {
            agent: from_space(env.action_space(agent)) for agent in env.possible_agents
        }

    def _draw_space(self, random: np.random.Generator, calls: int) -> list[dict[str, Any]]:
        """Return an action of every agent there can be, for each call; a step takes those of the living."""
        drawn = {agent: sample(random, calls) for agent, sample in self._samples.items()}
        return [{agent: actions[call] for agent, actions in drawn.items()} for call in range(calls)]


class ParallelSubject(ZooSubject):
    """A parallel env: one call steps all living agents; when none is left, the next episode begins."""

    masks = None  # Agents may have different actions; a policy gets theirs by name
    _lived: int = 0

    def __init__(self, env: Any, spec: Spec, **how: Any) -> None:
        super().__init__(env, spec, **how)
        self._rows = len(env.possible_agents)
        self.observation = {}
        self._infos: Mapping[str, Any] = {}

    def reset(self) -> None:
        self.observation, self._infos = split_reset(self._run_reset())
        self.resets += 1
        nothing = dict.fromkeys(self.env.agents, 0.0)
        not_yet = dict.fromkeys(self.env.agents, False)
        self.last = (self.observation, nothing, not_yet, not_yet, self._infos)
        self._note_names()

    def step(self, actions: Any) -> None:
        lifeline.beat(self._pulse, self._calls)
        try:
            living = self.env.agents
            if type(actions) is Pick:
                actions = self._pick(actions)
            self._lived += len(living)
            if len(living) != len(actions):
                actions = {agent: actions[agent] for agent in living}
            self.last = given = self._step(actions)
            self._calls += 1
            self.observation, self._infos = given[0], given[4]
            if not self.env.agents:
                self.observation, self._infos = split_reset(self._reset())
                self.resets += 1
        except BROKEN as error:
            raise raised(self.spec.name, error, masked=self._mask() is not None) from error

    def _settled(self, pick: Pick) -> Any:
        """Agent by agent, as far as they are told what is legal."""
        masks, spaces = self._mask(), self.env.action_space
        chosen = dict(pick.drawn)
        for (agent, drawn), chance in zip(pick.drawn.items(), pick.chance, strict=True):
            mask = (masks or {}).get(agent)
            if mask is not None:
                chosen[agent] = settled(drawn, chance, mask, spaces(agent))
        return chosen

    def _mask(self) -> dict[str, Any] | None:
        """The masks of the living by agent."""
        infos, seen = self._infos, self.observation
        told = {agent: mask_in(infos.get(agent), seen.get(agent)) for agent in self.env.agents}
        masks = {agent: mask for agent, mask in told.items() if mask is not None}
        return masks or None

    def unfold(self, row: NDArray[Any]) -> dict[str, Any]:
        return dict(zip(self.env.possible_agents, map(plain_action, row[0]), strict=True))

    def _parts(self) -> dict[str, Any]:
        return {**super()._parts(), "next_observations": self.observation}


class TurnSubject(ZooSubject):
    """An AEC env: one call is the turn of one agent, and counts as one env-step and one agent-step.

    Whose turn it is and which actions are legal is known only when a turn comes, so what is drawn beforehand
    is an action of every agent, and a number from 0 to 1 that picks another where that one is not legal.
    """

    def __init__(self, env: Any, spec: Spec, **how: Any) -> None:
        super().__init__(env, spec, **how)
        self._last = in_span("env.last", env.last, timed=self.in_spans)
        self._agents, self._rewards, self._turn = (
            layer_of(env, name) for name in ("agents", "rewards", "agent_selection")
        )
        self._everybody = list(env.possible_agents)
        self._earned: Mapping[str, float] = {}

    def reset(self) -> None:
        self._run_reset(partial(self._begin, seed=self.spec.seed))
        self._note_names()

    def step(self, actions: Any) -> None:
        """Take a turn by the action of the agent selected; the dead pass."""
        _, _, ended, cut, _ = self.last
        lifeline.beat(self._pulse, self._calls)
        try:
            if type(actions) is Pick:
                actions = self._pick(actions)
            self._step(None if ended or cut else actions)
            self._earned = self._rewards.rewards
            self._calls += 1
            if self._agents.agents:
                self._look()
            else:
                self._begin()
        except BROKEN as error:
            raise raised(self.spec.name, error, masked=self._mask() is not None) from error

    def legal(self, random: np.random.Generator, actions: Sequence[Any]) -> Sequence[Any]:
        return picks(random, actions)

    def _settled(self, pick: Pick) -> Any:
        _, _, ended, cut, _ = self.last
        agent, mask = self.turn, self._mask()
        drawn = pick.drawn[agent] if isinstance(pick.drawn, Mapping) else pick.drawn
        return (
            drawn
            if mask is None or ended or cut
            else settled(drawn, pick.chance, mask, self.env.action_space(agent))
        )

    def _mask(self) -> Any:
        return mask_in(self.last[4], self.observation)

    @property
    def told(self) -> Mapping[str, Any]:
        return {**super().told, "agent": self.turn, "info": self.last[4]}

    @property
    def turn(self) -> Any:
        """The agent whose turn it is."""
        return self._turn.agent_selection

    @property
    def rewards_now(self) -> list[float]:
        """What the last turn gave to every agent, in their order."""
        return [float(self._earned.get(agent, 0.0)) for agent in self._everybody]

    def _begin(self, seed: int | None = None) -> None:
        if seed is None:
            self._reset()
        else:
            seeded(self._reset, seed)
        self.resets += 1
        self._look()

    def _look(self) -> None:
        self.last = self._last()
        self.observation = self.last[0]

    def _parts(self) -> dict[str, Any]:
        """What the agent whose turn it is sees."""
        return dict(zip(NAMES, to_plain(self.last, self.env), strict=True))


def layer_of(env: Any, name: str) -> Any:
    """Return the wrapper, or the env within, that has an attribute of its own.

    PettingZoo's wrappers look an attribute up in each other, which costs more than a step of a small game.
    """
    inner = env.unwrapped
    while env is not inner and name not in vars(env) and not hasattr(type(env), name):
        env = env.env
    return env


# The keys of an info that name the seat whose turn it is, and the seat that won.
PLAYER, WINNER = "player", "winner"

# What an env around OpenSpiel calls the seat whose turn it is, and the last rewards of both.
CURRENT, REWARDS = "current_player", "rewards"

TOGETHER = -2  # What OpenSpiel says of a move that all players make at the same time
HERO, VILLAIN = 0, 1  # Seats by number: the first one is the hero's

DRAW = 0.5

EXPECTED = (
    "hero= and villain= need an env of two seats: an AEC env of PettingZoo with two agents, or an env of "
    'Gymnasium whose info["player"] names the seat whose turn it is, or which has seats()'
)


class InfoSeats:
    """One env of Gymnasium: its info names the seat whose turn it is, or the two seats alternate."""

    def __init__(self, subject: SingleSubject) -> None:
        self._subject = subject
        seats = getattr(getattr(subject.env, "unwrapped", subject.env), "seats", None)
        labels = seats() if callable(seats) else seats
        if labels is not None and (not isinstance(labels, Sequence) or len(labels) != 2):
            raise InputError(f"seats() returned {labels!r:.60}: expected the names of the two seats")
        self._labels = None if labels is None else list(labels)
        self._next = HERO
        self._score = DRAW

    def to_move(self) -> int | None:
        """Return the seat whose turn it is; None if a step only passes."""
        _, _, ended, cut, info = self._subject.last
        player = seat_in(self._subject.told["info"] if ended or cut else info)
        return self._next if player is None else self._seat_of(player)

    def note(self, mover: int | None) -> None:
        """Read the rewards of the step that a seat just made."""
        _, reward, ended, cut, info = self._subject.last
        self._next = HERO if ended or cut else VILLAIN - (mover or HERO)
        if not (ended or cut):
            return
        if WINNER in info:
            winner = plain_label(info[WINNER])
            drawn = winner is None or (isinstance(winner, int) and winner < 0)
            self._score = DRAW if drawn else float(self._seat_of(winner) == HERO)
        elif len(info.get(REWARDS, ())) == 2:
            self._score = score_of(float(info[REWARDS][HERO]) - float(info[REWARDS][VILLAIN]), HERO)
        else:
            self._score = score_of(float(reward), mover)

    def score(self) -> float:
        """Return 1 if the hero won the game that just ended, 0 if the villain did, 0.5 for a draw."""
        return self._score

    def check(self) -> None:
        """Refuse an env that names no seat after its reset."""
        if self._labels is None and seat_in(self._subject.told["info"]) is None:
            raise InputError(f"{self._subject.spec.name} names no seat: {EXPECTED}")

    def _seat_of(self, label: Any) -> int:
        label = plain_label(label)
        if self._labels is not None and label in self._labels:
            return self._labels.index(label)
        if isinstance(label, int) and label in (HERO, VILLAIN):
            return int(label)
        known = " or ".join(map(repr, self._labels or (HERO, VILLAIN)))
        if label == TOGETHER:
            raise InputError(f"{self._subject.spec.name} has moves that both make at once: {EXPECTED}")
        raise InputError(
            f"{self._subject.spec.name} names seat {label!r}: expected {known}, for hero= and villain= need "
            "a game of two seats"
        )


class TurnSeats:
    """An AEC env of two agents: the first possible agent is the hero's seat."""

    def __init__(self, subject: TurnSubject) -> None:
        self._subject = subject
        self._agents = list(subject.env.possible_agents)
        self._rewards = [0.0, 0.0]
        self._winner: Any = None

    def to_move(self) -> int | None:
        _, _, ended, cut, _ = self._subject.last
        return None if ended or cut else self._agents.index(self._subject.turn)

    def note(self, mover: int | None) -> None:
        """Keep the last rewards that are not all zero: those of the end come before the dead pass."""
        rewards = self._subject.rewards_now
        if any(rewards):
            self._rewards = rewards
        info = self._subject.last[4]
        if isinstance(info, Mapping) and WINNER in info:
            self._winner = info[WINNER]

    def score(self) -> float:
        (hero, villain), winner = self._rewards, self._winner
        self._rewards, self._winner = [0.0, 0.0], None
        if winner in (*self._agents, HERO, VILLAIN):
            return float(winner in (self._agents[HERO], HERO))
        return score_of(hero - villain, HERO)

    def check(self) -> None:
        """Refuse a game of more than two agents."""
        if len(self._agents) != 2:
            raise InputError(f"{self._subject.spec.name} has {len(self._agents)} agents: {EXPECTED}")


def seats_of(subject: Subject) -> InfoSeats | TurnSeats:
    """Return what tells the seats of a subject apart; InputError if it has no two seats."""
    inner = subject.behind if isinstance(subject, Proxy) else subject
    if isinstance(inner, TurnSubject):
        return TurnSeats(inner)
    if isinstance(inner, SingleSubject) and inner.spec.agents == 1:
        return InfoSeats(inner)
    raise InputError(f"{subject.spec.name}: {EXPECTED}")


def seat_in(info: Mapping[str, Any]) -> Any:
    """Return what an info says of whose turn it is; None if it does not."""
    return info.get(PLAYER, info.get(CURRENT))


def plain_label(label: Any) -> Any:
    """Return a label as Python's own value where NumPy has one."""
    return label.item() if isinstance(label, (np.generic, np.ndarray)) and label.ndim == 0 else label


def score_of(reward: float, mover: int | None) -> float:
    """Return the hero's score from the sign of the last reward, which is the mover's."""
    if not reward:
        return DRAW
    return float((reward > 0) == (mover == HERO))
