"""Stepping one thing through fresh random actions, timing the steps and nothing else.

Runs inside the environment of every peer, so it needs NumPy and the standard library only.
"""

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

import numpy as np

POOL_ACTIONS = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One timed stretch of steps of one side."""

    ns: float
    agent_steps: int
    tokens_used: float | None = None
    """Mean observation tokens in use per agent after the last step; None for a side without tokens."""

    @property
    def ns_per_agent_step(self) -> float:
        return self.ns / self.agent_steps


def pin(cores: Collection[int]) -> None:
    """Keep this process on these cores, where the system can; none means anywhere."""
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)


def tokens_used(observations: Any) -> float:
    """Count the used tokens per agent in [..., agents, tokens, 3] bytes; an unused token starts with 0xFF."""
    return float((observations[..., 0] != 0xFF).sum(axis=-1).mean())


class Stepper:
    """Steps something with random actions, prepared for each run before its clock starts.

    A short tape played again and again would push every agent in one direction, into the border; so a run
    cuts its rows out of one pool at fresh random places.
    """

    def __init__(
        self,
        step: Callable[[Any], object],
        *,
        shape: tuple[int, ...],
        num_actions: int,
        dtype: str = "int32",
        count_tokens: Callable[[], float] | None = None,
        seed: int = 42,
    ) -> None:
        self._step = step
        self._shape = shape
        self._width = int(np.prod(shape))
        self._count_tokens = count_tokens
        self._random = np.random.default_rng(seed)
        self._pool = self._random.integers(0, num_actions, POOL_ACTIONS + self._width).astype(dtype)

    def measure(self, agent_steps: int) -> Block:
        """Time about `agent_steps` agent-steps, at least one call, after running a tenth as many untimed.

        The side that had its turn before has left its own data in the caches.
        """
        calls = max(1, round(agent_steps / self._width))
        self.warm_up(calls // 10 + 1)
        rows = self._rows(calls)
        step = self._step
        start = perf_counter_ns()
        for row in rows:
            step(row)
        ns = perf_counter_ns() - start
        used = self._count_tokens() if self._count_tokens else None
        return Block(ns=ns, agent_steps=len(rows) * self._width, tokens_used=used)

    def warm_up(self, calls: int) -> None:
        """Step without measuring: until caches are warm, or agents have left their first places."""
        for row in self._rows(calls):
            self._step(row)

    def _rows(self, calls: int) -> list[Any]:
        starts = self._random.integers(0, POOL_ACTIONS, calls)
        return [self._pool[start : start + self._width].reshape(self._shape) for start in starts]
