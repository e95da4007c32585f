"""Hotloop finds, fixes and proves the speed of reinforcement-learning simulation."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hotloop.envs.adapters import make_vec, register_envs, when_imported

if TYPE_CHECKING:
    from hotloop.core import spans
    from hotloop.core.spans import Marks, mark, monitor, span
    from hotloop.envs import spatial
    from hotloop.envs.open import make
    from hotloop.include import include_dir
    from hotloop.lab.api import bench, compare, profile, validate
    from hotloop.loops.run import run
    from hotloop.loops.shadow import shadow

__version__ = "0.1.0"
__all__ = [
    "Marks",
    "__version__",
    "bench",
    "compare",
    "include_dir",
    "make",
    "make_vec",
    "mark",
    "monitor",
    "profile",
    "register_envs",
    "run",
    "shadow",
    "span",
    "spans",
    "spatial",
    "validate",
]

_HOMES = {
    "Marks": "hotloop.core.spans",
    "include_dir": "hotloop.include",
    "make": "hotloop.envs.open",
    "mark": "hotloop.core.spans",
    "monitor": "hotloop.core.spans",
    "profile": "hotloop.lab.api",
    "validate": "hotloop.lab.api",
    "compare": "hotloop.lab.api",
    "bench": "hotloop.lab.api",
    "run": "hotloop.loops.run",
    "shadow": "hotloop.loops.shadow",
    "span": "hotloop.core.spans",
}

# Names that are modules themselves.
_MODULES = {"spans": "hotloop.core.spans", "spatial": "hotloop.envs.spatial"}


def __getattr__(name: str) -> Any:
    """Import on first use, so that `import hotloop` costs nothing; from then on it costs nothing either."""
    if name in _MODULES:
        found: Any = import_module(_MODULES[name])
    elif name in _HOMES:
        found = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'hotloop' has no attribute {name!r}")
    globals()[name] = found
    return found


# A program that imports Gymnasium expects our ids there, whichever of the two it imports first.
when_imported("gymnasium", register_envs)
