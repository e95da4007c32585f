"""Two seats at an env of any kind: whose turn it is, and who won the game that just ended."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hotloop.core.errors import InputError
from hotloop.envs.foreign.single import SingleSubject
from hotloop.envs.foreign.zoo import TurnSubject
from hotloop.envs.subject import Proxy, Subject

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
