"""The arithmetic of learning over whole arrays, and the only door to its native code on the host."""

import importlib
from functools import cache
from typing import Any


@cache
def load() -> Any:
    """Return the compiled module, or the error that importing it raised; needs no torch."""
    try:
        return importlib.import_module("hotloop.train._kernels")
    except ImportError as error:
        return error
