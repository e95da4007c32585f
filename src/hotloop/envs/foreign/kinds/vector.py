"""Gymnasium's vector envs: many envs behind one call, in one process or in workers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.core.errors import TheirError
from hotloop.core.isolate import lifeline
from hotloop.core.isolate.lifeline import STEPS, Doing
from hotloop.core.spans import mark, span
from hotloop.envs.foreign.actions import sampled, sampler
from hotloop.envs.foreign.kinds.single import first_of, five, second_of, seeded
from hotloop.envs.foreign.masks import METHOD, Pick, mask_in, mask_method, settled
from hotloop.envs.foreign.spec import (
    BROKEN,
    ForeignSpec,
    arrays,
    is_a,
    raised,
    time_inside,
    time_method,
    unseen,
    unwrapped,
)
from hotloop.envs.foreign.subject import NAMES, ForeignSubject

SEND, WAIT, GATHER = "send actions", "wait for workers", "gather"

ALL_AT_WORK, SLOWEST = "until the first is done", "from the first to the last"
"""The two parts of waiting: the second is what uneven workers cost."""


class VectorSubject(ForeignSubject):
    """A vector env; it resets its envs by itself, in the step after an end or in the same.

    A call that only resets an env is no step of it: such reset steps are counted apart.
    """

    def __init__(self, env: Any, spec: ForeignSpec, *, timed: bool) -> None:
        super().__init__(env, spec, timed=timed)
        self.autoreset = autoreset_of(env)
        self._single = single_space(env)
        self._steps = self._reset_steps = self._calls = 0
        self._finished = 0
        """Envs whose episode ended in the last call."""
        self._given: tuple[Any, ...] = ()
        self._masks = masks_of_envs(env)
        self._names: tuple[str, ...] = ()
        """Of what the env said at its reset; a comparison asks for all of them every time."""

    def reset(self) -> None:
        try:
            with lifeline.doing(Doing.RESET, Doing.STEP):
                given = seeded(self._reset, self.spec.seed)
        except BROKEN as error:
            raise raised(self.spec.name, error) from error
        self.observation = first_of(given)
        self.resets += self.spec.num_envs
        self._finished = 0
        nothing = np.zeros(self.spec.num_envs)
        self._given = (self.observation, nothing, nothing != 0, nothing != 0, second_of(given))
        self._names = tuple(self._parts())

    def step(self, actions: Any) -> None:
        self._pulse[STEPS] = self._calls
        self._calls += 1
        try:
            if type(actions) is Pick:
                actions = self._pick(actions)
            self._given = given = five(self._step(actions))
        except (EOFError, ConnectionError) as error:
            raise TheirError(f"{self.spec.name}: one of its workers has ended{lifeline.at_step()}") from error
        except BROKEN as error:
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
        if self._single is None:
            return sampled(self.env.action_space, random, calls)
        envs = self.spec.num_envs
        each = sampler(Drawn(self._single), self.spec.name)(random, calls * envs)
        return [np.array(each[call * envs : (call + 1) * envs]) for call in range(calls)]

    @property
    def _rows(self) -> int:  # type: ignore[override]
        return self.spec.num_envs

    def _settled(self, pick: Pick) -> Any:
        """Env by env, in a copy of what was drawn."""
        mask, space = self._mask(), getattr(self.env, "single_action_space", self._single)
        if mask is None:
            return pick.drawn
        rows = zip(pick.drawn, pick.chance, mask, strict=True)
        return np.array([settled(*row, space) for row in rows], np.asarray(pick.drawn).dtype)

    def _mask(self) -> Any:
        if not self._given:
            return None
        mask = mask_in(self._given[4], self.observation)
        return mask if mask is not None or self._masks is None else self._masks()

    def _counted(self) -> dict[str, int]:
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
        pipes = getattr(inner, "parent_pipes", None) or getattr(inner, "remotes", None)
        if pipes:
            workers = Pipes(inner, pipes)
            inner.step, self.workers = workers.step, workers
        envs = getattr(inner, "envs", ())
        for env in envs if isinstance(envs, (list, tuple)) else ():
            time_inside(env)
            for method in ("step", "reset"):
                time_method(env, method, f"envs.{method}")


NEXT_STEP, SAME_STEP = "NextStep", "SameStep"


def autoreset_of(env: Any) -> str:
    """When the next episode begins: as Gymnasium's vector envs say it, as others are known to do it."""
    said = getattr(env, "metadata", None) or {}
    mode = said.get("autoreset_mode") if isinstance(said, Mapping) else None
    if mode is not None:
        return str(getattr(mode, "value", mode))
    is_vector = is_a(env, "gymnasium.vector", "VectorEnv")
    return NEXT_STEP if is_vector else SAME_STEP


@dataclass(frozen=True, slots=True)
class Drawn:
    """Something with the actions of one env."""

    action_space: Any


def single_space(env: Any) -> Any:
    """The space of one env's actions, of a batch that has no space for all of them; else None."""
    space = getattr(env, "action_space", None)
    if space is None:
        count = getattr(env, "num_actions", None)
        return None if count is None else Count(int(count))
    single = getattr(env, "single_action_space", None)
    if single is not None:
        return None if single != space else space
    shape = getattr(space, "shape", None) or ()
    return None if shape[:1] == (env.num_envs,) else space


@dataclass(frozen=True, slots=True)
class Count:
    """Actions that are numbers from 0 on."""

    n: int


def masks_of_envs(env: Any) -> Callable[[], Sequence[Any]] | None:
    """The method of every env that gives its mask, where the envs are in this process and have one."""
    envs = getattr(unwrapped(env), "envs", None)
    if envs is None and is_a(env, "stable_baselines3.common.vec_env", "VecEnv"):
        return partial(env.env_method, METHOD) if env.has_attr(METHOD) else None
    envs = envs or ()
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
