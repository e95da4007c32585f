"""Gymnasium's vector envs: many envs behind one call, in one process or in workers."""

from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.core.spans import mark, span
from hotloop.envs.foreign.actions import sampled
from hotloop.envs.foreign.answering import NAMES, ForeignSubject
from hotloop.envs.foreign.masks import Pick, mask_in, mask_method, settled
from hotloop.envs.foreign.spec import ForeignSpec, arrays, raised, time_inside, time_method, unseen, unwrapped

SEND, WAIT, GATHER = "send actions", "wait for workers", "gather"

ALL_AT_WORK, SLOWEST = "until the first is done", "from the first to the last"
"""The two parts of waiting: the second is what uneven workers cost."""


class VectorSubject(ForeignSubject):
    """A vector env; it resets its envs by itself, in the step after an end or in the same.

    A call that only resets an env is no step of it: such reset steps are counted apart.
    """

    def __init__(self, env: Any, spec: ForeignSpec, *, timed: bool) -> None:
        super().__init__(env, spec, timed=timed)
        said = env.metadata.get("autoreset_mode")
        self.autoreset = "NextStep" if said is None else str(said.value)
        self._steps = self._reset_steps = 0
        self._finished = 0
        """Envs whose episode ended in the last call."""
        self._given: tuple[Any, ...] = ()
        self._masks = masks_of_envs(env)
        self._names: tuple[str, ...] = ()
        """Of what the env said at its reset; a comparison asks for all of them every time."""

    def reset(self) -> None:
        try:
            self.observation, infos = self._reset(seed=self.spec.seed)
        except Exception as error:
            raise raised(self.spec.name, error) from error
        self.resets += self.spec.num_envs
        self._finished = 0
        nothing = np.zeros(self.spec.num_envs)
        self._given = (self.observation, nothing, nothing != 0, nothing != 0, infos)
        self._names = tuple(self._parts())

    def step(self, actions: Any) -> None:
        try:
            if type(actions) is Pick:
                actions = self._pick(actions)
            self._given = given = self._step(actions)
        except Exception as error:
            raise raised(self.spec.name, error, masked=self._is_masked) from error
        self.observation = given[0]
        if self.autoreset == "NextStep":
            self._reset_steps += self._finished
        over = np.logical_or(given[2], given[3])
        self._finished = finished = int(np.count_nonzero(over))
        self.resets += finished
        self._steps += self.spec.num_envs
        if finished and self.autoreset == "Disabled":
            self.observation, _ = self._reset(options={"reset_mask": over})

    def _drawn(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        return sampled(self.env.action_space, random, calls)

    @property
    def _rows(self) -> int:  # type: ignore[override]
        return self.spec.num_envs

    def _settled(self, pick: Pick) -> Any:
        """Env by env, in a copy of what was drawn."""
        mask, space = self._mask(), self.env.single_action_space
        if mask is None:
            return pick.drawn
        rows = zip(pick.drawn, pick.chance, mask, strict=True)
        return np.array([settled(*row, space) for row in rows], np.asarray(pick.drawn).dtype)

    def _mask(self) -> Any:
        if not self._given:
            return None
        mask = mask_in(self._given[4], self.observation)
        return mask if mask is not None or self._masks is None else self._masks()

    @property
    def counters(self) -> dict[str, int]:
        steps = self._steps - self._reset_steps
        return {
            "foreign_steps": steps,
            "env_steps": steps,
            "agent_steps": steps * self.spec.agents,
            "resets": self.resets,
            "reset_steps": self._reset_steps,
        }

    def answers(self) -> Mapping[str, NDArray[Any]]:
        """As the env gives them: their first axis is the envs already."""
        now, nothing = self._parts(), np.zeros((self.spec.num_envs, 0))
        return {name: now.get(name, nothing) for name in self._names}

    def everything(self) -> Mapping[str, NDArray[Any]]:
        """All of the last call's answers, also those that a reset does not give."""
        return self._parts()

    def unseen(self) -> Sequence[str]:
        return unseen(dict(zip(NAMES, self._given, strict=True)))

    def _parts(self) -> dict[str, NDArray[Any]]:
        """By env where they are; what belongs to all envs, or to one, has an axis of one before it."""
        parts = zip(NAMES, self._given, strict=True)
        named = (each for part, value in parts for each in arrays(part, value))
        return {name: rows[0] if rows.shape[1:2] == (self.spec.num_envs,) else rows for name, rows in named}

    def _by_env(self, rows: NDArray[Any]) -> NDArray[Any]:
        return rows

    def unfold(self, row: NDArray[Any]) -> NDArray[Any]:
        return row

    def _look_inside(self) -> None:
        """Set the envs apart from what runs them, or waiting for workers from the rest."""
        inner = unwrapped(self.env)
        pipes = getattr(inner, "parent_pipes", None)
        if pipes:
            workers = Pipes(inner, pipes)
            inner.step, self.workers = workers.step, workers
        for env in getattr(inner, "envs", ()):
            time_inside(env)
            for method in ("step", "reset"):
                time_method(env, method, f"envs.{method}")


def masks_of_envs(env: Any) -> Callable[[], Sequence[Any]] | None:
    """The method of every env that gives its mask, where the envs are in this process and have one."""
    envs = getattr(unwrapped(env), "envs", ())
    methods = [mask_method(each) for each in envs]
    if not methods or None in methods:
        return None
    return lambda: [method() for method in methods if method]


class Pipes:
    """A step of an async vector env taken apart: send, wait until each worker is done, gather."""

    def __init__(self, env: Any, pipes: Sequence[Connection]) -> None:
        self._env = env
        self._pipes = list(pipes)
        self.busy_ns = [0] * len(self._pipes)
        """From sending to each worker's answer."""
        self.last = [0] * len(self._pipes)
        """How often each worker was the last."""

    def step(self, actions: Any) -> Any:
        with span(SEND):
            self._env.step_async(actions)
        with span(WAIT):
            self._wait()
        with span(GATHER):
            return self._env.step_wait()

    def _wait(self) -> None:
        begin = now_ns()
        pending: dict[Any, int] = {pipe: worker for worker, pipe in enumerate(self._pipes)}
        worker = 0
        while pending:
            ready = wait(list(pending))
            taken_ns = now_ns() - begin
            if len(pending) == len(self._pipes):
                mark(ALL_AT_WORK)
            for pipe in ready:
                worker = pending.pop(pipe)
                self.busy_ns[worker] += taken_ns
        self.last[worker] += 1
        mark(SLOWEST)

    @property
    def slowest(self) -> tuple[int, float]:
        """The worker that was last most often, and in which share of the steps."""
        worker = max(range(len(self.last)), key=self.last.__getitem__)
        return worker, self.last[worker] / max(sum(self.last), 1)
