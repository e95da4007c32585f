"""Closeness: how near two arrays must be to count as equal; to the byte unless somebody says otherwise."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.core.validation import BYTES

Place = tuple[int, ...]
USUAL_TOLERANCE = 1e-6
EXPECTED = "expected bytes, ulp:N (such as ulp:4), tolerance or tolerance:T (such as tolerance:1e-6)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Closeness:
    """A way to compare."""

    mode: str = BYTES
    apart: Callable[[NDArray[Any], NDArray[Any]], NDArray[np.bool_]] | None = None
    """Which floating-point numbers are too far from each other; None where bytes are compared."""

    def first_place(self, a: NDArray[Any], b: NDArray[Any]) -> Place | None:
        """Where two arrays of one shape and type first differ."""
        if a.tobytes() == b.tobytes():
            return None
        if self.apart is None or a.dtype.kind != "f":
            return first_byte(a, b)
        far = self.apart(a, b)
        return tuple(int(i) for i in np.argwhere(far)[0]) if far.any() else None

    @property
    def compares_state(self) -> bool:
        """Whether a hash of the state means anything: only where every bit has to be the same."""
        return self.apart is None


EXACT = Closeness()


def closeness_of(word: str) -> Closeness:
    """The way to compare that a word stands for."""
    kind, _, bound = word.partition(":")
    try:
        if kind == BYTES and not bound:
            return EXACT
        if kind == "ulp" and int(bound) >= 0:
            return Closeness(mode=f"ulp:{int(bound)}", apart=beyond_ulps(int(bound)))
        if kind == "tolerance":
            tolerance = float(bound or USUAL_TOLERANCE)
            if 0 <= tolerance < np.inf:
                return Closeness(mode=f"tolerance:{tolerance:g}", apart=beyond(tolerance))
    except ValueError:
        pass
    raise InputError(f"--mode {word} does not fit: {EXPECTED}")


def first_byte(a: NDArray[Any], b: NDArray[Any]) -> Place:
    """Where the bytes of two arrays first differ; values alone would not tell 0.0 from -0.0."""
    one, other = (np.frombuffer(array.tobytes(), np.uint8) for array in (a, b))
    at = int(np.argmax(one != other)) // a.dtype.itemsize
    return tuple(int(i) for i in np.unravel_index(at, a.shape))


def beyond_ulps(most: int) -> Callable[[NDArray[Any], NDArray[Any]], NDArray[np.bool_]]:
    """Further apart than so many representable numbers; NaN is equal to NaN and to nothing else."""

    def apart(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
        one, other = ranks(a), ranks(b)
        gap = np.where(one > other, one - other, other - one).view(np.uint64)
        far: NDArray[np.bool_] = (gap > most) & ~(np.isnan(a) & np.isnan(b)) | (np.isnan(a) != np.isnan(b))
        return far

    return apart


def ranks(array: NDArray[Any]) -> NDArray[np.int64]:
    """The place of each number in the order of all that its type can hold; both zeros have one."""
    bits = array.view(f"i{array.dtype.itemsize}")
    lowest = np.iinfo(bits.dtype).min
    return np.where(bits < 0, lowest - bits, bits).astype(np.int64)


def beyond(tolerance: float) -> Callable[[NDArray[Any], NDArray[Any]], NDArray[np.bool_]]:
    """Further apart than the tolerance, and than that share of the reference's size on top."""

    def apart(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
        close: NDArray[np.bool_] = np.isclose(b, a, rtol=tolerance, atol=tolerance, equal_nan=True)
        return ~close

    return apart
