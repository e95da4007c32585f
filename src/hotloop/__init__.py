"""Hotloop finds, fixes and proves the speed of reinforcement-learning simulation."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hotloop.core.arrival import when_imported

if TYPE_CHECKING:
    from hotloop.core import spans
    from hotloop.core.monitor import monitor
    from hotloop.core.spans import Marks, mark, span
    from hotloop.envs.registration import register_envs
    from hotloop.envs.targets import make
    from hotloop.lab.api import profile

__version__ = "0.1.0"
__all__ = ["Marks", "__version__", "make", "mark", "monitor", "profile", "register_envs", "span", "spans"]

_HOMES = {
    "Marks": "hotloop.core.spans",
    "make": "hotloop.envs.targets",
    "mark": "hotloop.core.spans",
    "monitor": "hotloop.core.monitor",
    "profile": "hotloop.lab.api",
    "register_envs": "hotloop.envs.registration",
    "span": "hotloop.core.spans",
    "spans": "hotloop.core",
}


def __getattr__(name: str) -> Any:
    """Import on first use, so that `import hotloop` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'hotloop' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


# Whoever uses Gymnasium expects our ids there, whichever of the two is imported first.
when_imported("gymnasium", lambda: import_module("hotloop.envs.registration"))
