"""Our worlds as other libraries know environments: Gymnasium, PettingZoo, PufferLib, Stable-Baselines3.

Every preset is registered with Gymnasium: `grid/toy` is `hotloop/grid-toy-v0`. `import hotloop` runs this, so
it imports the rest of Hotloop only where that is called for.
"""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotloop.core.registry import PresetTarget

VERSION = 0


def register_envs() -> tuple[str, ...]:
    """Make `gymnasium.make("hotloop/grid-toy-v0")` and `make_vec` work; returns the ids. Twice is as once."""
    from hotloop.core.machine import need
    from hotloop.core.registry import presets, worlds

    gymnasium = need("gymnasium")
    found = {id_of(preset): preset for world in worlds().values() for preset in presets(world)}
    for name, preset in found.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point="hotloop.envs.adapters.gymnasium:HotloopEnv",
                vector_entry_point="hotloop.envs.adapters.gymnasium:HotloopVectorEnv",
                kwargs={"target": preset.target},
            )
    return tuple(found)


def id_of(preset: "PresetTarget") -> str:
    return f"hotloop/{preset.world.name}-{preset.preset.replace('_', '-')}-v{VERSION}"


# The name of a library's interface to its package, and to our class of it.
APIS = {
    "gymnasium": ("gymnasium", "hotloop.envs.adapters.gymnasium", "HotloopVectorEnv"),
    "sb3": ("stable_baselines3", "hotloop.envs.adapters.sb3", "HotloopVecEnv"),
    "puffer": ("numpy", "hotloop.envs.adapters.pufferlib", "PufferRows"),
}


def make_vec(target: str, /, *, num_envs: int = 1, api: str = "gymnasium", **given: Any) -> Any:
    """Many envs of a world behind one call, with the interface of a library: gymnasium, sb3 or puffer.

    `make_vec("grid/toy", num_envs=64, api="sb3", agents=1)` is what Stable-Baselines3 calls a VecEnv.
    """
    from hotloop.core.errors import unknown
    from hotloop.core.machine import need

    if api not in APIS:
        raise unknown("api", api, APIS, f"expected one of {', '.join(APIS)}")
    package, module, name = APIS[api]
    need(package)
    return getattr(import_module(module), name)(target, num_envs=num_envs, **given)


def when_imported(package: str, action: Callable[[], object]) -> None:
    """Act at once if the package is imported already, otherwise when its first import is done."""
    if package in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, ImportHook(package, action))


class ImportHook:
    """Stands before the finders of Python's imports, and lets them do all of the work."""

    def __init__(self, package: str, action: Callable[[], object]) -> None:
        self._package = package
        self._action = action
        self._looking = False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._package or self._looking:
            return None
        self._looking = True
        try:
            spec = find_spec(name)
        finally:
            self._looking = False
        loader: Any = None if spec is None else spec.loader
        if loader is not None:
            run: Callable[[ModuleType], None] = loader.exec_module

            def run_and_act(module: ModuleType) -> None:
                run(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                    self._action()

            loader.exec_module = run_and_act
        return spec
