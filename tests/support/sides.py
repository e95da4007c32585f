"""Contenders whose times are made up, so that a comparison can be checked by hand."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import hotloop
from hotloop.core.errors import Notice
from hotloop.core.record.comparison import Difference
from hotloop.core.turn_clock import Turn
from hotloop.envs.spec import Spec
from hotloop.lab.compare.process import ProcessSide, replay_both
from hotloop.lab.validate.equal import Agreement, Reach

Pace = Callable[[int], float]
"""From the number of a turn to the ns of one env-step."""

AGREED = Agreement(steps=10, envs=2, comparisons=440, fields=("observations",), difference=None)
DIFFERS = Agreement(
    steps=3,
    envs=2,
    comparisons=60,
    fields=("rewards",),
    difference=Difference(step=3, field="rewards", index=(1, 0), a="0.5", b="0.0"),
)


class FakeSide:
    def __init__(
        self, name: str, pace: Pace, work: Mapping[str, float], spoil: Callable[[Turn], Turn] | None = None
    ) -> None:
        self._spoil = spoil
        self.name = name
        self.turns = 0
        self.closed = False
        self._pace = pace
        self._work = work
        self._env_steps = 0

    grain = 1

    def seen(self) -> Mapping[str, str]:
        return {}

    def turn(self, env_steps: int, run_in: int | None = None) -> Turn:
        ns = self._pace(self.turns) * env_steps
        self.turns += 1
        self._env_steps += env_steps
        turn = Turn(round(ns), env_steps)
        return self._spoil(turn) if self._spoil else turn

    def counters(self) -> Mapping[str, int]:
        steps = self._env_steps
        extra = {name: round(rate * steps) for name, rate in self._work.items()}
        return {"env_steps": steps, "native_steps": steps, "agent_steps": 20 * steps, **extra}

    def close(self) -> None:
        self.closed = True


class FakeContender:
    """Each side made of it takes its next pace."""

    code: Mapping[str, Any] = {
        "version": "1",
        "commit": "0123abcd",
        "dirty": False,
        "compiler": None,
        "flags": None,
    }

    def __init__(
        self,
        name: str,
        *paces: Pace,
        agrees: Agreement = AGREED,
        itself: Agreement = AGREED,
        work: Mapping[str, float] | None = None,
        spoil: Callable[[Turn], Turn] | None = None,
    ) -> None:
        self._itself, self._spoil = itself, spoil
        self.name = name
        self.spec: Spec = hotloop.make("grid/toy", num_envs=1, impl="native").spec
        self.made: list[FakeSide] = []
        self.seeds: list[int | None] = []
        self._paces: Iterator[Pace] = iter(paces)
        self._last: Pace
        self._agrees = agrees
        self._work = work or {}
        self.closed = False

    takes_seed = True
    sources: Mapping[str, str] = {}

    def side(self, policy: str, *, profile: bool = False, seed: int | None = None) -> FakeSide:
        self.seeds.append(seed)
        self._last = next(self._paces, None) or self._last
        self.made.append(FakeSide(self.name, self._last, self._work, self._spoil))
        return self.made[-1]

    def agreement(self, other: object, *_: object) -> Agreement:
        return self._itself if other is self else self._agrees

    def faults(self, policy: str = "random") -> tuple[Notice, ...]:
        return ()

    def close(self) -> None:
        self.closed = True


def steady(ns: float) -> Pace:
    """A pace that varies by a thousandth, as if by chance, and comes out at `ns`."""
    return lambda turn: ns * (1 + ((turn * 7919) % 21 - 10) / 10_000)


def first_difference(a: ProcessSide, b: ProcessSide, steps: int) -> str | None:
    """Where two sides first answer differently when both replay the same steps; None where nowhere."""
    difference = replay_both(a, b, Reach(steps=steps, needed=steps, episodes=False, most_ns=None)).difference
    return None if difference is None else str(difference)
