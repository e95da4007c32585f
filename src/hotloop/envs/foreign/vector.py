"""Many envs behind one call: Gymnasium's vector envs, VecEnvs, PufferLib's rows, torchrl's batches."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection, wait
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError, TheirError
from hotloop.core.process import lifeline
from hotloop.core.spans import mark, span
from hotloop.envs.foreign.inside import (
    BROKEN,
    METHOD,
    Pick,
    attribute,
    envs_inside,
    is_a,
    mask_in,
    mask_method,
    raised,
    sampled,
    sampler,
    settled,
    time_inside,
    time_method,
    unwrapped,
)
from hotloop.envs.foreign.outputs import arrays, everything, unseen
from hotloop.envs.foreign.phases import log_steps
from hotloop.envs.foreign.single import five
from hotloop.envs.foreign.subject import NAMES, ForeignSubject, split_reset
from hotloop.envs.spec import Spec

SEND, WAIT, GATHER = "send actions", "wait for workers", "gather"

# The two parts of waiting: the second is what uneven workers cost.
ALL_AT_WORK, SLOWEST = "until the first is done", "from the first to the last"


class VectorSubject(ForeignSubject):
    """A vector env; it resets its envs by itself, in the step after an end or in the same.

    A call that only resets an env is no step of it: such reset steps are counted apart.
    """

    def __init__(self, env: Any, spec: Spec, **how: Any) -> None:
        super().__init__(env, spec, **how)
        self.autoreset = autoreset_of(env)
        self._single = single_space(env)
        self._rows = spec.num_envs
        self._reset_steps = 0
        self._finished = 0
        """Envs whose episode ended in the last call."""
        self._masks = masks_of_envs(env)
        self._names: tuple[str, ...] = ()
        """Of what the env said at its reset; a comparison asks for all of them every time."""

    def reset(self) -> None:
        self.observation, infos = split_reset(self._run_reset())
        self.resets += self.spec.num_envs
        self._finished = 0
        nothing = np.zeros(self.spec.num_envs)
        self.last = (self.observation, nothing, nothing != 0, nothing != 0, infos)
        self._names = tuple(self._parts())

    def step(self, actions: Any) -> None:
        self.play((actions,))

    def play(self, actions: Iterable[Any]) -> None:
        """Step once with each of them; a step of a quick batch takes microseconds, so this loop is lean."""
        step, pulse, count, either = self._step, self._pulse, np.count_nonzero, np.logical_or
        is_next_step, is_manual = self.autoreset == "NextStep", self.autoreset == "Disabled"
        try:
            for action in actions:
                pulse[lifeline.STEPS] = self._calls
                given = step(self._pick(action) if type(action) is Pick else action)
                self._calls += 1
                self.last = given = given if type(given) is tuple and len(given) == 5 else five(given)
                self.observation = given[0]
                if is_next_step:
                    self._reset_steps += self._finished
                over = either(given[2], given[3])
                self._finished = finished = int(count(over))
                if finished:
                    self.resets += finished
                    if is_manual:
                        self.observation, _ = self._reset(options={"reset_mask": over})
            pulse[lifeline.STEPS] = self._calls  # at the latest here a forked copy that came back ends
        except (EOFError, ConnectionError) as error:
            lifeline.end_copy(pulse)
            raise TheirError(f"{self.spec.name}: one of its workers has ended{lifeline.at_step()}") from error
        except BROKEN as error:
            lifeline.end_copy(pulse)
            raise raised(self.spec.name, error, masked=self._mask() is not None) from error

    def _draw_space(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        if self._single is None:
            return sampled(self.env.action_space, random, calls)
        envs = self.spec.num_envs
        each = sampler(SimpleNamespace(action_space=self._single), self.spec.name)(random, calls * envs)
        return [np.array(each[call * envs : (call + 1) * envs]) for call in range(calls)]

    def _settled(self, pick: Pick) -> Any:
        """Env by env, in a copy of what was drawn; an env that says nothing now plays what was drawn."""
        mask, space = self._mask(), getattr(self.env, "single_action_space", self._single)
        if mask is None:
            return pick.drawn
        try:
            rows = zip(pick.drawn, pick.chance, mask, strict=True)
            chosen = [
                drawn if row is None else settled(drawn, chance, row, space) for drawn, chance, row in rows
            ]
            return np.array(chosen, np.asarray(pick.drawn).dtype)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise InputError(
                f"Hotloop cannot apply the action masks of {self.spec.name} to what it drew ({error}): "
                "give a row of the mask for each env and an entry for each action, or use --policy"
            ) from error

    def _mask(self) -> Any:
        if not self.last:
            return None
        mask = mask_in(self.last[4], self.observation)
        if mask is not None or self._masks is None:
            return mask
        masks = self._masks()
        # a VecEnv may answer to any method, with nothing or None for each env
        is_whole = len(masks) == self.spec.num_envs and all(each is not None for each in masks)
        return masks if is_whole else None

    @property
    def env_steps(self) -> int:
        return super().env_steps - self._reset_steps

    def _counted(self) -> dict[str, int]:
        return {**super()._counted(), "reset_steps": self._reset_steps}

    def answers(self) -> Mapping[str, NDArray[Any]]:
        """As the env gives them: their first axis is the envs already."""
        now, nothing = self._parts(), np.zeros((self.spec.num_envs, 0))
        return {name: now.get(name, nothing) for name in self._names}

    def _everything(self) -> Mapping[str, NDArray[Any]]:
        """All of the last call's answers, also those that a reset does not give."""
        return self._parts()

    def unseen(self) -> Sequence[str]:
        return unseen(dict(zip(NAMES, self.last, strict=True)))

    def _parts(self) -> dict[str, NDArray[Any]]:
        """By env where they are; what belongs to all envs, or to one, has an axis of one before it."""
        parts = zip(NAMES, self.last, strict=True)
        named = (each for part, value in parts for each in arrays(part, value))
        return {name: rows[0] if rows.shape[1:2] == (self.spec.num_envs,) else rows for name, rows in named}

    def _by_env(self, rows: NDArray[Any]) -> NDArray[Any]:
        return rows

    def unfold(self, row: NDArray[Any]) -> NDArray[Any]:
        return row

    @property
    def single_spaces(self) -> tuple[object, object]:
        """As it says them of one env; the space of a batch object is often that of one env anyway."""
        names = ("observation_space", "action_space")
        single = (getattr(self.env, f"single_{name}", None) for name in names)
        found = zip(single, self.spaces, strict=True)
        observation, action = (whole if one is None else one for one, whole in found)
        return observation, action

    def _look_inside(self) -> None:
        """Set the envs apart from what runs them, or waiting for workers from the rest."""
        inner = unwrapped(self.env)
        pipes = attribute(inner, "parent_pipes") or attribute(inner, "remotes")
        if pipes:
            workers = Pipes(inner, pipes)
            inner.step, self.workers = workers.step, workers
        for env in envs_inside(inner) or ():
            time_inside(env)
            for method in ("step", "reset"):
                time_method(env, method, f"envs.{method}")


NEXT_STEP, SAME_STEP = "NextStep", "SameStep"


def autoreset_of(env: Any) -> str:
    """When the next episode begins: as Gymnasium's vector envs say it, as others are known to do it."""
    said = attribute(env, "metadata") or {}
    mode = said.get("autoreset_mode") if isinstance(said, Mapping) else None
    if mode is not None:
        return str(getattr(mode, "value", mode))
    is_vector = is_a(env, "gymnasium.vector", "VectorEnv")
    return NEXT_STEP if is_vector else SAME_STEP


def single_space(env: Any) -> Any:
    """The space of one env's actions, of a batch that has no space for all of them; else None."""
    space = attribute(env, "action_space")
    if space is None:
        count = attribute(env, "num_actions")
        return None if count is None else SimpleNamespace(n=int(count))
    single = attribute(env, "single_action_space")
    if single is not None:
        return None if single != space else space
    shape = attribute(space, "shape") or ()
    return None if shape[:1] == (env.num_envs,) else space


def masks_of_envs(env: Any) -> Callable[[], Sequence[Any]] | None:
    """The method of every env that gives its mask, where the envs are in this process and have one."""
    envs = envs_inside(env)
    if envs is None and is_a(env, "stable_baselines3.common.vec_env", "VecEnv"):
        return partial(env.env_method, METHOD) if env.has_attr(METHOD) else None
    methods = [mask_method(each) for each in envs or ()]
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


class SeededSubject(VectorSubject):
    """A batch seeded apart from its reset: a VecEnv of Stable-Baselines3, any object with `num_envs`."""

    def _seeded_reset(self) -> Any:
        seed: Any = attribute(self.env, "seed")
        if callable(seed):
            seed(self.spec.seed)
        return super()._seeded_reset()


class RowsSubject(ForeignSubject):
    """An env of PufferLib's kind: one call steps every row, finished ones begin anew by themselves."""

    def __init__(self, env: Any, spec: Spec, **how: Any) -> None:
        super().__init__(env, spec, **how)
        self._infos: Any = ()
        space = env.single_action_space
        self._choices = np.asarray(space.nvec if hasattr(space, "nvec") else space.n)
        """How many actions a row has, for each part of an action where it has parts."""

    def reset(self) -> None:
        self.observation, self._infos = self._run_reset(partial(self._reset, self.spec.seed))
        self.resets += self.spec.num_envs
        nothing = np.zeros(self.env.num_agents, np.float32)
        self.last = (self.observation, nothing, nothing != 0, nothing != 0)

    def step(self, actions: Any) -> None:
        lifeline.beat(self._pulse, self._calls)
        try:
            self.last = given = self._step(actions)
        except BROKEN as error:
            raise raised(self.spec.name, error, masked=self._mask() is not None) from error
        self.observation, self._infos = given[0], given[4:]
        self._calls += 1
        ended = np.count_nonzero(np.logical_or(given[2], given[3]))
        self.resets += int(ended) // self.spec.agents

    def _draw_space(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        shape = (calls, self.env.num_agents, *self._choices.shape)
        return list(random.integers(self._choices, size=shape, dtype=np.int32))

    def _by_env(self, rows: NDArray[Any]) -> NDArray[Any]:
        return rows.reshape(len(rows), self.spec.num_envs, self.spec.agents, *rows.shape[2:])

    def unfold(self, row: NDArray[Any]) -> Any:
        return row.reshape(self.env.num_agents, *self._choices.shape)

    def _everything(self) -> Mapping[str, NDArray[Any]]:
        """With the infos, which come and go, and are not by env."""
        return {**self.answers(), **everything({"infos": self._infos})}

    def _outputs(self) -> Mapping[str, Any]:
        return {**super()._outputs(), "infos": self._infos}

    def unseen(self) -> Sequence[str]:
        return unseen({"infos": self._infos})

    def answers(self) -> Mapping[str, NDArray[Any]]:
        names = ("observations", "rewards", "terminals", "truncations")
        envs, agents = self.spec.num_envs, self.spec.agents
        return {
            name: np.asarray(rows).reshape(envs, agents, *np.asarray(rows).shape[1:])
            for name, rows in zip(names, self.last, strict=False)
        }


PARTS = {"reward": "rewards", "terminated": "terminals", "truncated": "truncations"}


class TensorSubject(ForeignSubject):
    """An env of torchrl, or a batch of them; one that ended begins anew in the same call."""

    autoreset = "SameStep"
    spaces = (None, None)

    def __init__(self, env: Any, spec: Spec, **how: Any) -> None:
        super().__init__(env, spec, **how)
        self._step = log_steps(env.step_and_maybe_reset, self._log, timed=self.in_spans)
        self._shown: Any = None

    def _seeded_reset(self) -> Any:
        self.env.set_seed(self.spec.seed)
        return self._reset()

    def reset(self) -> None:
        self.observation = self._run_reset()
        self.resets += self.spec.num_envs
        zeros = np.zeros((self.spec.num_envs, 1))
        begun = {"reward": zeros.astype(np.float32), "terminated": zeros != 0, "truncated": zeros != 0}
        self._shown = {**begun, **dict(self.observation.items())}

    def step(self, actions: Any) -> None:
        lifeline.beat(self._pulse, self._calls)
        try:
            self.observation.set(self.env.action_key, actions)
            given, self.observation = self._step(self.observation)
        except BROKEN as error:
            raise raised(self.spec.name, error, masked=False) from error
        self._shown = dict(given.get("next").items())
        self._calls += 1
        self.resets += int(np.count_nonzero(self._shown["done"]))

    def _draw_space(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        sys.modules["torch"].manual_seed(int(random.integers(2**31)))
        return [self.env.action_spec.rand() for _ in range(calls)]

    def _outputs(self) -> Mapping[str, Any]:
        return self._shown or {}

    def answers(self) -> Mapping[str, NDArray[Any]]:
        seen = {key: value for key, value in self._shown.items() if key not in PARTS}
        named = {name: self._shown[key] for key, name in PARTS.items() if key in self._shown}
        rows = everything({"observations": seen, **named})
        return {name: each.reshape(self.spec.num_envs, -1) for name, each in rows.items()}

    def _by_env(self, rows: NDArray[Any]) -> NDArray[Any]:
        return rows.reshape(len(rows), self.spec.num_envs, -1)

    def unfold(self, row: NDArray[Any]) -> Any:
        like = self.env.action_spec.rand()
        return sys.modules["torch"].as_tensor(row).reshape(like.shape).to(like.dtype)
