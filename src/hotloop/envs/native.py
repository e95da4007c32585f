"""Engines: what a batch calls to have its envs stepped, whichever code does it.

The native module's batches, for which this is the only door, the twins of `reference.py` and whatever stands
in front of one of them agree in everything but speed.
"""

import importlib
import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import utc_now
from hotloop.core.errors import InputError, SetupError
from hotloop.core.files import free_path
from hotloop.core.world import Plan, Rival, World
from hotloop.envs.spec import BatchSettings, Build

if TYPE_CHECKING:
    from hotloop import _native
    from hotloop.envs.reference import ReferenceEngine

    NativeBatch = _native.Batch

Seeds = NDArray[np.uint64] | None  # One an env; None is each env's own next one


# What a batch calls to have its envs stepped; _native.pyi has the calls, `ReferenceEngine` says what they do.
# RuntimeError says that a call came too early or too late, TypeError that actions cannot be read in place.
Engine: TypeAlias = "NativeBatch | ReferenceEngine | EngineWrapper"

# An engine that can do part of its work in a second way and compare.
ShadowedEngine: TypeAlias = "NativeBatch | EngineWrapper"


@cache
def _load() -> ModuleType | ImportError:
    try:
        return importlib.import_module("hotloop._native")
    except ImportError as error:
        return error


def load_native() -> ModuleType | None:
    """The native module; None where it is not built."""
    module = _load()
    return None if isinstance(module, ImportError) else module


def _built() -> ModuleType:
    """Return the native module, which the caller knows is built."""
    module = load_native()
    assert module is not None
    return module


def why_not(world: str) -> str | None:
    """Why this world cannot run natively here; None where it can."""
    module = _load()
    if isinstance(module, ImportError):
        return f"the native module is not there ({module})"
    if world not in module.WORLDS:
        return f"this build has no native {world}"
    return None


def build() -> Build | None:
    """How the native module was built; None where there is none."""
    module = load_native()
    return build_of(module, module.clock_name()) if module else None


def build_of(module: ModuleType, clock: str) -> Build:
    return Build(compiler=module.COMPILER, flags=module.FLAGS, isa=module.ISA, clock=clock)


def plain_values(plan: Plan) -> dict[str, int | float | str | list[Any]]:
    """Return the values of a plan that native code reads."""
    return {name: value for name, value in plan.items() if isinstance(value, (int, float, str, list))}


def make_engine(world: World, plan: Plan, options: BatchSettings) -> "NativeBatch":
    """A native batch; `why_not` must have said None. SetupError where the machine lacks what is asked for.

    InputError where a file cannot be mapped.
    """
    try:
        engine: NativeBatch = _built().make(
            world.native_name,
            plain_values(plan),
            options.num_envs,
            options.threads,
            options.seed,
            options.autoreset,
            options.profile,
            options.drag,
            options.seed_step,
        )
    except OSError as error:
        raise InputError(f"{error}; give memmap_folder=DIR") from None
    except RuntimeError as error:
        raise SetupError(str(error)) from None
    return engine


def mark_cost_ns() -> float:
    """What one mark of a phase takes in native code, here and now."""
    cost: float = _built().mark_ns()
    return cost


class EngineWrapper:
    """An engine in front of another, looked at after every call; all else is that one's own."""

    def __init__(self, engine: Engine) -> None:
        self._behind = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._behind, name)

    def step(self, actions: NDArray[np.int32]) -> None:
        self._behind.step(actions)
        self._look()

    def reset(self, seeds: Seeds) -> None:
        self._behind.reset(seeds)
        self._look()

    def reset_many(self, envs: NDArray[np.int64], seeds: Seeds) -> None:
        self._behind.reset_many(envs, seeds)
        self._look()

    def _look(self) -> None:
        """Do what there is to do after every call."""


FIRST = (1_000, 10_000)

EVERY = 100_000  # Comparisons after which progress is said: at the first ones, then at every so many

FOLDER = Path("artifacts/validation")

TIMES = ("shadow.reference_ticks", "shadow.candidate_ticks")  # The counters of what each of the two ways took


class ShadowEngine(EngineWrapper):
    """A native engine that is looked at after every call; all else is the engine's own."""

    def __init__(self, engine: ShadowedEngine, target: str, rival: Rival) -> None:
        super().__init__(engine)
        self._engine, self._target, self._rival = engine, target, rival
        self._next = FIRST[0]
        self._mismatches = 0
        self._logged: dict[int, int] = {}
        self._log: Path | None = None

    def _look(self) -> None:
        comparisons, mismatches = self._engine.shadow()
        if mismatches != self._mismatches:
            self._mismatches = mismatches
            self._write_new()
        if comparisons >= self._next:
            self._next = milestone_after(comparisons)
            ratio = timing_ratio(dict(self._engine.counters()))
            ways = self._rival.reference, self._rival.candidate
            say(progress_line(self._target, comparisons, mismatches, ratio, ways))

    def _write_new(self) -> None:
        """Add what is new to the log; only the first mismatches of an env are known by place."""
        shape = self._engine.arrays()["observations"].shape
        lines = []
        for env in range(shape[0]):
            found = self._engine.mismatches(env)
            lines += [line(env, each, shape[2:]) for each in found[self._logged.get(env, 0) :]]
            self._logged[env] = len(found)
        try:
            if self._log is None:
                FOLDER.mkdir(parents=True, exist_ok=True)
                stamp = utc_now().strftime("%Y%m%d-%H%M%S")
                self._log = free_path(FOLDER / f"mismatches-{stamp}-{os.getpid()}.log")
                self._log.touch(exist_ok=False)
                say(f"shadow of {self._target}: MISMATCH, written to {self._log.resolve()}")
                rival = self._rival
                ways = f"the {rival.reference} {rival.parameter}'s byte against the {rival.candidate} one's"
                lines = [f"{self._target}: {ways}", *lines]
            with self._log.open("a", encoding="utf-8") as log:
                log.write("".join(f"{each}\n" for each in lines))
        except OSError as error:  # the run goes on, and its counters have the mismatches all the same
            say(f"shadow of {self._target}: MISMATCH, and no log of it: {error}")


def progress_line(
    target: str, comparisons: int, mismatches: int, ratio: float | None, ways: tuple[str, str]
) -> str:
    """How much was compared so far, and how many times as long the first of two ways takes."""
    took = f", {ways[0]} takes {ratio:.2f} times as long as {ways[1]}" if ratio else ""
    return f"shadow of {target}: {comparisons:,} comparisons, {mismatches:,} mismatches{took}"


def milestone_after(comparisons: int) -> int:
    """The next number of comparisons that is worth a word."""
    coming = (each for each in FIRST if each > comparisons)
    return next(coming, (comparisons // EVERY + 1) * EVERY)


def without_times(counters: Mapping[str, int]) -> dict[str, int]:
    """Counters of work alone: what the two encoders took is never the same twice."""
    return {name: count for name, count in counters.items() if name not in TIMES}


def timing_ratio(counters: Mapping[str, int]) -> float | None:
    """How many times as long the reference took as the candidate; None if they were not timed."""
    reference, candidate = (counters.get(name, 0) for name in TIMES)
    return reference / candidate if reference and candidate else None


def line(env: int, found: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """One mismatch in words; `shape` is that of one agent's observation."""
    episode_seed, tick, agent, byte, reference, candidate = found
    place = [env, agent, *(int(at) for at in np.unravel_index(byte, shape))]
    return (
        f"tick {tick}, env {env}, agent {agent}, observations{place}: {reference} against {candidate}, "
        f"episode seed {episode_seed}"
    )


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
