"""The decorator half of a span."""

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import ParamSpec, TypeVar

P = ParamSpec("P")

R = TypeVar("R")


def timed(region: AbstractContextManager[object], function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function so that each call runs inside the region; on or off is decided at the call."""
    later = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    if any(runs_later(function) for runs_later in later):
        raise TypeError(f"{function.__qualname__} runs after it returns: put the span inside it")

    @functools.wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        with region:
            return function(*args, **kwargs)

    return inside
