"""Our worlds by the names of other libraries: ids of Gymnasium, and vector envs by the name of an interface.

Every preset is registered with Gymnasium: `grid/toy` is `hotloop/grid-toy-v0`.
"""

from importlib import import_module
from typing import Any

from hotloop.core.errors import unknown
from hotloop.core.machine import need
from hotloop.core.registry import PresetTarget, presets, worlds

VERSION = 0


def register_envs() -> tuple[str, ...]:
    """Make `gymnasium.make("hotloop/grid-toy-v0")` and `make_vec` work; returns the ids. Twice is as once."""
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


def id_of(preset: PresetTarget) -> str:
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
    if api not in APIS:
        raise unknown("api", api, APIS, f"expected one of {', '.join(APIS)}")
    package, module, name = APIS[api]
    need(package)
    return getattr(import_module(module), name)(target, num_envs=num_envs, **given)
