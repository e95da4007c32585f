"""The only door to the trainer's native code on the host; it needs no torch."""

import importlib
from functools import cache
from typing import Any


@cache
def load() -> Any:
    """The compiled module, or why it cannot be had."""
    try:
        return importlib.import_module("hotloop.train._kernels")
    except ImportError as error:
        return error
