"""Engines: what a batch calls to have its envs stepped, whichever code does it.

The native module's batches, the twins of `reference.py` and whatever stands in front of one of them
agree on `Engine`, in everything but speed.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Seeds = NDArray[np.uint64] | None  # One an env; None is each env's own next one


class Engine(Protocol):
    """Envs of one world, stepped together through arrays that it owns.

    RuntimeError says that a call came too early or too late, TypeError that actions cannot be read in place.
    """

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Every array by name, [num_envs, ...]; views that the next call rewrites."""

    def reset(self, seeds: Seeds, /) -> None: ...

    def reset_many(self, envs: NDArray[np.int64], seeds: Seeds, /) -> None: ...

    def step(self, actions: NDArray[np.int32], /) -> None: ...

    def players(self) -> list[str]: ...

    def choose(self, player: int, actions: NDArray[np.int32], /) -> None:
        """Let the player of a number fill in the actions."""

    def picture(self, env: int, /) -> NDArray[np.uint8]:
        """What a world's drawer draws from."""

    def digest(self, env: int, /) -> int:
        """A hash of an env's logical state."""

    def save(self, env: int, /) -> bytes: ...

    def load(self, env: int, saved: bytes, /) -> None: ...

    def fork(self, env: int, into: int, /) -> None:
        """Copy one env into the place of another."""

    def counters(self) -> list[tuple[str, int]]: ...

    def phase_names(self) -> list[str]: ...

    def phase_ns(self, last_step_only: bool, /) -> Sequence[float]:
        """Of each phase, in the order of their names."""

    def step_ns(self, last_step_only: bool, /) -> float: ...

    def keep_log(self, rows: int, /) -> None: ...

    def take_log(self) -> NDArray[np.int64]: ...

    def lend(self, threads: int, /) -> None:
        """Step with another pool's threads, where it has threads at all; 0 is with its own."""


class ShadowedEngine(Engine, Protocol):
    """An engine that can do part of its work in a second way and compare."""

    def shadow(self) -> tuple[int, int]:
        """Comparisons so far, and mismatches."""

    def mismatches(self, env: int, /) -> Sequence[tuple[int, ...]]:
        """The first of an env, by their places."""


class EngineWrapper:
    """An engine in front of another, which forwards every call that it does not override."""

    def __init__(self, engine: Engine) -> None:
        self._behind = engine

    def arrays(self) -> dict[str, NDArray[Any]]:
        return self._behind.arrays()

    def reset(self, seeds: Seeds) -> None:
        self._behind.reset(seeds)

    def reset_many(self, envs: NDArray[np.int64], seeds: Seeds) -> None:
        self._behind.reset_many(envs, seeds)

    def step(self, actions: NDArray[np.int32]) -> None:
        self._behind.step(actions)

    def players(self) -> list[str]:
        return self._behind.players()

    def choose(self, player: int, actions: NDArray[np.int32]) -> None:
        self._behind.choose(player, actions)

    def picture(self, env: int) -> NDArray[np.uint8]:
        return self._behind.picture(env)

    def digest(self, env: int) -> int:
        return self._behind.digest(env)

    def save(self, env: int) -> bytes:
        return self._behind.save(env)

    def load(self, env: int, saved: bytes) -> None:
        self._behind.load(env, saved)

    def fork(self, env: int, into: int) -> None:
        self._behind.fork(env, into)

    def counters(self) -> list[tuple[str, int]]:
        return self._behind.counters()

    def phase_names(self) -> list[str]:
        return self._behind.phase_names()

    def phase_ns(self, last_step_only: bool) -> Sequence[float]:
        return self._behind.phase_ns(last_step_only)

    def step_ns(self, last_step_only: bool) -> float:
        return self._behind.step_ns(last_step_only)

    def keep_log(self, rows: int) -> None:
        self._behind.keep_log(rows)

    def take_log(self) -> NDArray[np.int64]:
        return self._behind.take_log()

    def lend(self, threads: int) -> None:
        self._behind.lend(threads)
