"""Envs as strangers write them, with lookups of attributes that do odd things."""

from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import numpy as np


class Base:
    num_actions = 2

    def __init__(self) -> None:
        self.steps = 0

    def reset(self, seed: int | None = None) -> Any:
        self.steps = 0
        return np.zeros(2), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return np.full(2, float(self.steps)), 1.0, self.steps >= 20, False, {}


class Recurses(Base):
    def __getattr__(self, name: str) -> Any:
        return getattr(self, name + "_")


class Raises(Base):
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name} before connect()")


class Mock(Base):
    """Has every attribute that is asked for, and none of them means anything."""

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **more: None


class AllNone(Base):
    def __getattr__(self, name: str) -> Any:
        return None


class NotBuilt(Base):
    @property
    def unwrapped(self) -> Any:
        raise ValueError("not built yet")

    @property
    def num_envs(self) -> int:
        raise RuntimeError("not built yet")

    @property
    def action_space(self) -> Any:
        raise RuntimeError("call reset first")


class Slots:
    __slots__ = ("steps",)
    num_actions = 2
    __init__, reset, step = Base.__init__, Base.reset, Base.step


class AsyncStep(Base):
    async def step(self, action: Any) -> Any:
        return super().step(action)


class AsyncReset(Base):
    async def reset(self, seed: int | None = None) -> Any:
        return super().reset()


class Later(Base):
    """Its step is no coroutine function, but returns a coroutine."""

    def step(self, action: Any) -> Any:
        async def later() -> None: ...

        return later()


async def later() -> Base:
    return Base()


TimeStep = namedtuple("TimeStep", "observations rewards last")  # noqa: PYI024 - as OpenSpiel has it


class Game:
    """A game with the interface of OpenSpiel's `rl_environment`: two players and three moves."""

    num_players = 2

    def __init__(self, *, together: bool = False) -> None:
        self.is_turn_based, self.seeds = not together, []
        self.moves: list[list[int]] = []

    def action_spec(self) -> Any:
        return {"num_actions": 3, "min": 0, "max": 2, "dtype": int}

    def observation_spec(self) -> Any:
        return {"info_state": (4,), "legal_actions": (3,), "current_player": (), "serialized_state": ()}

    def seed(self, seed: int) -> None:
        self.seeds.append(seed)

    def reset(self) -> Any:
        self.moves = []
        return self.now(None)

    def step(self, actions: list[int]) -> Any:
        assert all(action in (0, len(self.moves) % 2 + 1) for action in actions), actions
        assert len(actions) == (1 if self.is_turn_based else 2)
        self.moves.append(actions)
        return self.now([float(len(self.moves)), -float(len(self.moves))])

    def now(self, rewards: Any) -> Any:
        over, legal = len(self.moves) == 3, [0, len(self.moves) % 2 + 1]
        player = (-4 if over else len(self.moves) % 2) if self.is_turn_based else -2
        seen = {"info_state": [[float(len(self.moves))] * 4] * 2, "legal_actions": [legal, legal]}
        return TimeStep({**seen, "current_player": player}, rewards, lambda: over)


def together() -> Game:
    return Game(together=True)


def strange_specs() -> Any:
    given = {name: lambda *_: 7 for name in ("reset", "step", "action_spec", "observation_spec")}
    return SimpleNamespace(**given)
