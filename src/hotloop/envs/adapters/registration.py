"""Registers every preset with Gymnasium: `grid/toy` is `hotloop/grid-toy-v0`. Importing this is enough."""

from hotloop.core.packages import need
from hotloop.core.registry import Found, presets, worlds

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
                vector_entry_point="hotloop.envs.adapters.vector:HotloopVectorEnv",
                kwargs={"target": preset.target},
            )
    return tuple(found)


def id_of(preset: Found) -> str:
    return f"hotloop/{preset.world.name}-{preset.preset.replace('_', '-')}-v{VERSION}"


register_envs()
