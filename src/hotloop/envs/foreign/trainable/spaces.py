"""Spaces of Gymnasium as the trainer takes them: observations become rows, actions come from rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.core.world import Acts
from hotloop.envs.foreign.actions import MASK
from hotloop.envs.foreign.spec import plain

SEEN = (
    "expected Box, Discrete, MultiDiscrete, MultiBinary, or a Dict or Tuple of them; a wrapper can make it so"
)

DONE = "expected Discrete, MultiDiscrete, MultiBinary or a Box of real numbers"


class Bounds:
    """Real numbers of an action: for two finite ends a policy has -1 and 1, else they are as they are."""

    def __init__(self, acts: Acts) -> None:
        self._low, self._high = (np.array(ends, np.float32) for ends in (acts.low, acts.high))
        finite = np.isfinite(self._low) & np.isfinite(self._high)
        with np.errstate(invalid="ignore"):
            middle, half = (self._high + self._low) / 2, (self._high - self._low) / 2
        self._middle = np.where(finite, middle, 0).astype(np.float32)
        self._half = np.where(finite & (half > 0), half, 1).astype(np.float32)

    def own(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """In the env's own terms, cut to what it takes."""
        within: NDArray[np.float32] = np.clip(rows * self._half + self._middle, self._low, self._high)
        return within

    def scaled(self, own: NDArray[Any]) -> NDArray[np.float32]:
        """In a policy's terms."""
        found: NDArray[np.float32] = (own - self._middle) / self._half
        return found


class Reader(Protocol):
    """Writes what an env shows into a row."""

    @property
    def size(self) -> int:
        """Of the row."""

    def write(self, seen: Any, row: NDArray[np.float32]) -> None:
        """ValueError where it does not fit the space."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """A box, or several numbers that are 0 or 1, as they are."""

    size: int

    def write(self, seen: Any, row: NDArray[np.float32]) -> None:
        given = np.asarray(seen).reshape(-1)
        if given.size != self.size:
            raise ValueError(f"{given.size} numbers: its space says {self.size}")
        row[:] = given


@dataclass(frozen=True, slots=True)
class OneHot:
    """Numbered choices: a 1 in the place of each."""

    sizes: NDArray[np.int64]
    start: Any

    @property
    def size(self) -> int:
        return int(self.sizes.sum())

    def write(self, seen: Any, row: NDArray[np.float32]) -> None:
        given = (np.asarray(seen) - self.start).reshape(-1)
        if given.shape != self.sizes.shape or (given < 0).any() or (given >= self.sizes).any():
            raise ValueError(f"{np.asarray(seen).tolist()}, which is not in its space")
        row[:] = 0
        row[given + np.cumsum(self.sizes) - self.sizes] = 1


@dataclass(frozen=True, slots=True)
class Several:
    """Parts by name or place, one behind the other."""

    parts: Sequence[tuple[Any, Reader]]

    @property
    def size(self) -> int:
        return sum(reader.size for _, reader in self.parts)

    def write(self, seen: Any, row: NDArray[np.float32]) -> None:
        first = 0
        for key, reader in self.parts:
            reader.write(seen[key], row[first : first + reader.size])
            first += reader.size


def reader_of(name: str, space: Any) -> Reader:
    """How observations of a space become rows; the mask that some have among them is left out."""
    match type(space).__name__:
        case "Box" | "MultiBinary":
            return Numbers(int(np.prod(space.shape)))
        case "Discrete":
            return OneHot(np.array([space.n]), int(space.start))
        case "MultiDiscrete":
            return OneHot(np.ravel(space.nvec).astype(np.int64), space.start)
        case "Dict":
            kept = [(key, part) for key, part in space.spaces.items() if key != MASK]
            return Several([(key, reader_of(name, part)) for key, part in kept])
        case "Tuple":
            return Several([(place, reader_of(name, part)) for place, part in enumerate(space.spaces)])
    raise InputError(f"{name} observes {plain(space)}: {SEEN}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Doing:
    """From a row of a policy's actions to what an env's step takes."""

    outputs: int
    """Of a policy over these actions."""
    acts: Acts | None
    """None is one numbered action."""
    shape: tuple[int, ...] = ()
    start: Any = 0
    dtype: Any = np.int64
    bounds: Bounds | None = None

    def own(self, row: NDArray[Any]) -> Any:
        """`row` is one number, or as many as an action has."""
        if self.acts is None:
            return int(row) + self.start
        if self.bounds is None:
            return (row.reshape(self.shape) + self.start).astype(self.dtype)
        return self.bounds.own(row).reshape(self.shape).astype(self.dtype)


def doing_of(name: str, space: Any) -> Doing:
    """How actions of a space are made; InputError where no policy of ours can choose them."""
    match type(space).__name__:
        case "Discrete":
            return Doing(outputs=int(space.n), acts=None, start=int(space.start))
        case "MultiDiscrete" | "MultiBinary":
            of_each = getattr(space, "nvec", None)
            sizes = np.full(space.shape, 2) if of_each is None else of_each
            acts = Acts(choices=tuple(int(size) for size in np.ravel(sizes)))
            start = getattr(space, "start", 0)
            return Doing(
                outputs=sum(acts.choices), acts=acts, shape=space.shape, start=start, dtype=space.dtype
            )
        case "Box" if np.issubdtype(space.dtype, np.floating) and np.prod(space.shape):
            low, high = (tuple(np.ravel(ends).tolist()) for ends in (space.low, space.high))
            acts = Acts(low=low, high=high)
            return Doing(
                outputs=2 * acts.width, acts=acts, shape=space.shape, dtype=space.dtype, bounds=Bounds(acts)
            )
    raise InputError(f"{name} acts by {plain(space)}: {DONE}")
