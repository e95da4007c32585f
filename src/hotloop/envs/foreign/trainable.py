"""Somebody's single-agent envs as a batch that the trainer takes: flat observations, numbered actions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.core.isolate import lifeline
from hotloop.core.isolate.lifeline import Doing
from hotloop.core.packages import need
from hotloop.core.settings import apply
from hotloop.core.target import Target
from hotloop.core.world import Array, Layout, World
from hotloop.envs import callables
from hotloop.envs.batch import Batch, Spec
from hotloop.envs.engine import Seeds
from hotloop.envs.foreign.opening import Order, gym, ordered
from hotloop.envs.foreign.spec import BROKEN, plain, raised
from hotloop.envs.settings import BatchSettings

GYM = "gym:"

EXPECTED = "hotloop train takes single-agent envs of Gymnasium with Box observations and Discrete actions"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoParameters:
    """What a foreign env has: its keys go to its maker."""


class EnvsEngine:
    """Envs of Gymnasium stepped one after another, their answers in arrays; episodes follow at once."""

    def __init__(self, name: str, envs: Sequence[Any], seed: int) -> None:
        self._name, self._envs = name, envs
        self._seeds, self._random = (np.random.default_rng([seed, use]) for use in range(2))
        self._start = int(envs[0].action_space.start)
        self._actions = int(envs[0].action_space.n)
        count, size = len(envs), int(np.prod(envs[0].observation_space.shape))
        self._arrays: dict[str, NDArray[Any]] = {
            "observations": np.zeros((count, size), np.float32),
            "rewards": np.zeros((count, 1), np.float32),
            "terminals": np.zeros(count, np.bool_),
            "truncations": np.zeros(count, np.bool_),
            "final_observations": np.zeros((count, size), np.float32),
        }
        self._steps = self._resets = 0
        self._pulse = lifeline.pulse

    def arrays(self) -> dict[str, NDArray[Any]]:
        return self._arrays

    def reset(self, seeds: Seeds) -> None:
        self.reset_many(np.arange(len(self._envs)), seeds)
        self._arrays["terminals"][:] = self._arrays["truncations"][:] = False

    def reset_many(self, envs: NDArray[np.int64], seeds: Seeds) -> None:
        for place, env in enumerate(envs.tolist()):
            self._begin(env, None if seeds is None else int(seeds[place]) % 2**31)

    def _begin(self, env: int, seed: int | None = None) -> None:
        if seed is None and self._resets < len(self._envs):
            seed = int(self._seeds.integers(2**31))
        self._resets += 1
        with lifeline.doing(Doing.RESET, Doing.STEP):
            seen, _ = self._ask(partial(self._envs[env].reset, seed=seed))
        self._write("observations", env, seen)

    def step(self, actions: NDArray[np.int32]) -> None:
        arrays = self._arrays
        self._pulse[lifeline.STEPS] = self._steps // len(self._envs)
        for env, action in enumerate(actions.reshape(-1).tolist()):
            answer = self._ask(partial(self._envs[env].step, action + self._start))
            seen, arrays["rewards"][env, 0], ended, cut, _ = answer
            arrays["terminals"][env], arrays["truncations"][env] = ended, cut
            if ended or cut:
                self._write("final_observations", env, seen)
                self._begin(env)
            else:
                self._write("observations", env, seen)
        self._steps += len(self._envs)

    def _ask(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except BROKEN as error:
            raise raised(self._name, error) from error

    def _write(self, name: str, env: int, seen: Any) -> None:
        row = np.asarray(seen, np.float32).reshape(-1)
        if row.shape != self._arrays[name].shape[1:]:
            expected = self._arrays[name].shape[1]
            raise InputError(f"{self._name} observed {row.size} numbers: its space says {expected}")
        self._arrays[name][env] = row

    def players(self) -> list[str]:
        return ["random"]

    def choose(self, player: int, actions: NDArray[np.int32]) -> None:
        actions[...] = self._random.integers(self._actions, size=actions.shape)

    def picture(self, env: int) -> NDArray[np.uint8]:
        raise RuntimeError(f"{self._name} draws nothing here")

    def digest(self, env: int) -> int:
        """Of what it shows: its state is its own."""
        return hash(self._arrays["observations"][env].tobytes()) & (2**64 - 1)

    def save(self, env: int) -> bytes:
        """When it was: the state is the env's own, and nothing that a file says is ever run."""
        return self._steps.to_bytes(8, "little")

    def load(self, env: int, saved: bytes) -> None:
        """Stay where that is now; a run that goes on later begins a new episode."""
        if int.from_bytes(saved, "little") != self._steps:
            self._begin(env)

    def fork(self, env: int, into: int) -> None:
        raise RuntimeError(f"{self._name} cannot be forked")

    def counters(self) -> list[tuple[str, int]]:
        steps = [(name, self._steps) for name in ("env_steps", "agent_steps", "foreign_steps")]
        return [*steps, ("resets", self._resets)]

    def phase_names(self) -> list[str]:
        return []

    def phase_ns(self, last_step_only: bool) -> Sequence[float]:
        return []

    def step_ns(self, last_step_only: bool) -> float:
        return 0.0

    def keep_log(self, rows: int) -> None:
        """Nothing is logged."""

    def take_log(self) -> NDArray[np.int64]:
        return np.zeros((0, 4), np.int64)

    def lend(self, threads: int) -> None:
        """It has no threads."""


class EnvsBatch(Batch):
    """Such envs behind the arrays of a batch."""

    can_save = False

    def __init__(self, engine: EnvsEngine, spec: Spec, envs: Sequence[Any]) -> None:
        super().__init__(engine, spec)
        self._envs = envs

    @property
    def counters(self) -> dict[str, int]:
        """All of it is theirs: none of our paths is asked for or counted."""
        return dict(self.engine.counters()) | {"actions_converted": self._converted}

    def close(self) -> None:
        """Close the envs; one that raises then has been trained on all the same."""
        for env in self._envs:
            try:
                with lifeline.doing(Doing.CLOSE):
                    env.close()
            except KeyboardInterrupt:
                raise
            except BROKEN as error:  # whatever it raises, it is over
                lifeline.unclosed.append(callables.last_words(error))
        self._envs = ()
        super().close()


def open_trainable(target: Target) -> Batch:
    """The batch that is trained on; refuses what the trainer cannot take, with what it is."""
    gymnasium = need("gymnasium")
    own = () if target.name.startswith(GYM) else callables.parameters_of(callables.find(target.name))
    keys = {key: value for key, value in target.keys.items() if key != "num_envs"}
    order = ordered(Target(target.name, keys), own=own)
    options = apply(BatchSettings, {"num_envs": target.keys.get("num_envs", 1), "seed": order.seed})
    envs = [make_env(target.name, order)]
    layout = layout_of(target.name, envs[0], gymnasium)
    envs += [make_env(target.name, order) for _ in range(options.num_envs - 1)]
    spec = Spec(
        target=target.name,
        world=world_of(target.name, layout),
        preset="",
        impl="foreign",
        layout=layout,
        parameters=NoParameters(),
        settings=options,
        build=None,
        notices=(),
        decided_by={},
        origin=target.name,
    )
    return EnvsBatch(EnvsEngine(target.name, envs, options.seed), spec, envs)


def make_env(name: str, order: Order) -> Any:
    if name.startswith(GYM):
        return gym(name.removeprefix(GYM), order)
    return callables.call(name, order.arguments)


def layout_of(name: str, env: Any, gymnasium: Any) -> Layout:
    """What the trainer sees of an env; InputError where it cannot."""
    if not isinstance(env, gymnasium.Env):
        raise InputError(f"{name} is a {type(env).__name__}: {EXPECTED}")
    seen, actions = env.observation_space, env.action_space
    if not isinstance(seen, gymnasium.spaces.Box):
        raise InputError(f"{name} observes {plain(seen)}: {EXPECTED}; flatten it by a wrapper")
    if not isinstance(actions, gymnasium.spaces.Discrete):
        raise InputError(f"{name} acts by {plain(actions)}: {EXPECTED}")
    size = int(np.prod(seen.shape))
    arrays = (
        Array(name="observations", dtype="float32", shape=(size,)),
        Array(name="rewards", dtype="float32", shape=(1,)),
        Array(name="terminals", dtype="bool", shape=()),
        Array(name="truncations", dtype="bool", shape=()),
    )
    return Layout(agents=1, num_actions=int(actions.n), arrays=arrays)


def world_of(name: str, layout: Layout) -> World:
    """What the trainer asks of a world, said of an env."""

    def no_twin() -> Any:
        raise InputError(f"{name} has no twin: leave out validate=")

    return World(
        name=name,
        summary="an environment of somebody else's",
        parameters=NoParameters,
        presets={"": {}},
        phases=(),
        plan=lambda parameters: {},
        layout=lambda parameters: layout,
        twin=no_twin,
    )
