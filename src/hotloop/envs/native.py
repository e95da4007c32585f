"""The only door to the native module: whether it is there, and batches made by it."""

import importlib
from functools import cache
from types import ModuleType
from typing import Any

from hotloop.core.errors import InputError, SetupError
from hotloop.core.world import Plan, World
from hotloop.envs.engine import ShadowedEngine
from hotloop.envs.spec import BatchSettings, Build


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


def _native() -> ModuleType:
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


def make_engine(world: World, plan: Plan, options: BatchSettings) -> ShadowedEngine:
    """A native batch; `why_not` must have said None. SetupError where the machine lacks what is asked for.

    InputError where a file cannot be mapped.
    """
    try:
        engine: ShadowedEngine = _native().make(
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
    cost: float = _native().mark_ns()
    return cost
