"""Random actions for a space of anybody's, drawn before the clock starts."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hotloop.core.errors import InputError
from hotloop.envs.foreign.spec import attribute, has

Sample = Callable[[np.random.Generator, int], list[Any]]
"""From a generator and a number of calls to an action for each."""

EXPECTED = "expected an action_space to sample or num_actions; or say who plays with --policy module:callable"


def sampler(owner: object, name: str) -> Sample:
    """How to draw actions for an env: from its action space, or from the number of its actions."""
    space = attribute(owner, "action_space")
    if space is None or not has(space, "sample"):
        count = attribute(owner, "num_actions") or attribute(space, "n")
        if not isinstance(count, (int, np.integer)):
            raise InputError(f"{name} does not say what its actions are: {EXPECTED}")
        return whole_numbers(0, int(count))
    return from_space(space)


def discrete(owner: object) -> tuple[int, int] | None:
    """The first action and how many there are, of an env that takes one whole number; else None."""
    space = attribute(owner, "action_space")
    count = attribute(owner, "num_actions") if space is None else attribute(space, "n")
    return (int(getattr(space, "start", 0)), int(count)) if isinstance(count, (int, np.integer)) else None


def from_space(space: Any) -> Sample:
    """One draw for all calls where a space is a range of whole numbers, else its own sampling, seeded."""
    if type(space).__name__ == "Discrete":
        return whole_numbers(int(getattr(space, "start", 0)), int(space.n))
    return lambda random, calls: sampled(space, random, calls)


def whole_numbers(start: int, count: int) -> Sample:
    """As Gymnasium's own sampling gives them: NumPy's int64, which envs may ask for `.item()`."""
    return lambda random, calls: list(random.integers(start, start + count, calls))


def sampled(space: Any, random: np.random.Generator, calls: int) -> list[Any]:
    if has(space, "seed"):
        space.seed(int(random.integers(2**31)))
    return [space.sample() for _ in range(calls)]
