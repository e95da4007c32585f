"""Actions for any env: how random ones are drawn before the clock starts, and which are legal now."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.envs.foreign.inside import attribute, has
from hotloop.envs.subject import PlainActions

# From a generator and a number of calls to an action for each.
Sample = Callable[[np.random.Generator, int], list[Any]]

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


# The key of infos and observations, as Gymnasium and PettingZoo have it; the method of sb3-contrib.
MASK, METHOD = "action_mask", "action_masks"

GOLDEN = 0.6180339887498949  # From the chance of one part of an action to that of the next


class Pick(NamedTuple):
    """A random action that is settled when its turn comes: what was drawn if that is legal, else by chance.

    Every legal action is as likely as every other.
    """

    drawn: Any
    chance: Any  # From 0 to 1; an array where several act


def picks(random: np.random.Generator, drawn: Sequence[Any], rows: int | None = None) -> list[Pick]:
    """Actions with their chances, one a call or `rows` a call."""
    chances = random.random(len(drawn) if rows is None else (len(drawn), rows))
    return [Pick(*each) for each in zip(drawn, chances.tolist(), strict=True)]


def mask_in(*places: Any) -> Any:
    """The mask that infos or an observation have; None where neither does."""
    for place in places:
        if isinstance(place, Mapping):
            mask = place.get(MASK)
            if mask is not None:
                return looked_at(mask)
    return None


def looked_at(mask: Any) -> Any:
    """A mask that is quick to look at: of an array of another library every element would be a call of it."""
    is_plain = isinstance(mask, (np.ndarray, list, tuple)) or not hasattr(mask, "__array__")
    return mask if is_plain else np.asarray(mask)


def mask_method(env: Any) -> Callable[[], Any] | None:
    """The method that gives the mask, of an env or of what is inside its wrappers; none that allows all."""
    inner = attribute(env, "unwrapped")
    batch = attribute(inner, "_batch")
    if isinstance(batch, PlainActions) and batch.masks is None:
        return None
    for owner in (env, inner):
        method = attribute(owner, METHOD)
        if callable(method):
            found: Callable[[], Any] = method
            return found
    return None


def settled(drawn: Any, chance: float, mask: Any, space: Any = None) -> Any:
    """What was drawn where a mask allows it or nothing, else one of those that it allows."""
    if np.ndim(drawn):
        return settled_parts(drawn, chance, mask, space)
    start = int(getattr(space, "start", 0))
    if mask[int(drawn) - start]:
        return drawn
    legal = np.flatnonzero(mask)
    return np.int64(start + legal[int(chance * len(legal))]) if len(legal) else drawn


def settled_parts(drawn: Any, chance: float, mask: Any, space: Any) -> NDArray[Any]:
    """An action of several whole numbers, whose masks come as a tuple or one behind the other."""
    sizes, row = np.ravel(space.nvec), flat(mask)
    if row[np.ravel(drawn) + np.cumsum(sizes) - sizes].all():
        return np.asarray(drawn)
    masks = np.split(row, np.cumsum(sizes)[:-1])
    chances = [(chance + part * GOLDEN) % 1.0 for part in range(len(sizes))]
    parts = [settled(*each) for each in zip(np.ravel(drawn), chances, masks, strict=True)]
    return np.array(parts, np.asarray(drawn).dtype).reshape(np.shape(drawn))


def flat(mask: Any) -> NDArray[np.bool_]:
    """A mask as one row."""
    parts = mask if isinstance(mask, tuple) else (mask,)
    return np.concatenate([np.asarray(part, np.bool_).ravel() for part in parts])
