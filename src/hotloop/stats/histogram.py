"""A histogram of bounded size: any number of values in fixed memory, percentiles to a declared error.

Buckets are log-linear: each power of two is cut into 32 of equal width, and whole numbers below 32 have a
bucket each. A percentile is the middle of the bucket it falls into, so it is off by at most 1/64 of itself.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

BITS = 5

LINEAR = 1 << BITS  # Buckets of each power of two
BUCKETS = LINEAR * (64 - BITS)

RELATIVE_ERROR = 1 / (2 * LINEAR)

FEWEST_FOR = {0.50: 20, 0.95: 200, 0.99: 1_000}  # Values there have to be before a percentile is named


class Histogram:
    """Counts of whole numbers from 0 on; the largest is kept as it is."""

    __slots__ = ("_counts", "count", "max", "total")

    def __init__(self) -> None:
        import numpy as np

        self._counts = np.zeros(BUCKETS, np.int64)
        self.count = self.max = self.total = 0

    def add(self, values: "ArrayLike") -> None:
        """Count values in; one below 0 counts as 0."""
        import numpy as np

        taken = np.maximum(np.asarray(values, np.int64).ravel(), 0)
        if taken.size:
            self._counts += np.bincount(bucket(taken), minlength=BUCKETS)
            self.count += int(taken.size)
            self.total += int(taken.sum())
            self.max = max(self.max, int(taken.max()))

    def percentile(self, share: float) -> float | None:
        """Return the value that `share` of the values do not exceed; None if they are too few to say."""
        import numpy as np

        if self.count < FEWEST_FOR[share]:
            return None
        wanted = int(np.ceil(share * self.count))
        found = int(np.searchsorted(np.cumsum(self._counts), wanted))
        return min(middle(found), float(self.max))


def bucket(values: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """Return the number of the bucket that each value falls into."""
    import numpy as np

    shift = np.maximum(np.frexp(values.astype(np.float64))[1] - (BITS + 1), 0).astype(np.int64)
    numbers: NDArray[np.int64] = (shift << BITS) + (values >> shift)
    return numbers


def middle(number: int) -> float:
    """Return the middle of a bucket."""
    if number < 2 * LINEAR:
        return float(number)
    shift = (number >> BITS) - 1
    low = (number - (shift << BITS)) << shift
    return low + ((1 << shift) - 1) / 2
