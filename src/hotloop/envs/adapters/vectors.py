"""Many envs of a world as the vector env of a library."""

from importlib import import_module
from typing import Any

from hotloop.core.errors import unknown
from hotloop.core.packages import need

APIS = {
    "gymnasium": ("gymnasium", "hotloop.envs.adapters.vector", "HotloopVectorEnv"),
    "sb3": ("stable_baselines3", "hotloop.envs.adapters.sb3", "HotloopVecEnv"),
    "puffer": ("numpy", "hotloop.envs.adapters.pufferlib", "PufferRows"),
}
"""The name of a library's interface to its package, and to our class of it."""


def make_vec(target: str, /, *, num_envs: int = 1, api: str = "gymnasium", **given: Any) -> Any:
    """Many envs of a world behind one call, with the interface of a library: gymnasium, sb3 or puffer.

    `make_vec("grid/toy", num_envs=64, api="sb3", agents=1)` is what Stable-Baselines3 calls a VecEnv.
    """
    if api not in APIS:
        raise unknown("api", api, APIS, f"expected one of {', '.join(APIS)}")
    package, module, name = APIS[api]
    need(package)
    return getattr(import_module(module), name)(target, num_envs=num_envs, **given)
