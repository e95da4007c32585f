"""Where a series of noisy values changed its level, by the energy distance between what is before and after.

E-divisive (Matteson and James, 2014): the split whose two sides are furthest apart is kept where a shuffled
series is hardly ever split so well, and each side is then looked at in the same way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

FEWEST = 12  # Values below which nothing can be said of a change
LATEST = 500  # Values that are looked at, the latest: the distances of all pairs are held in memory
SIDE = 3  # Values on either side of a change, at least
SHUFFLES = 499

SUSPECT = 0.01  # How rarely a shuffled series may be split as well
SEED = 20_240_229


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A new level."""

    index: int  # Of the first value at it
    before: float  # The median since the change before it
    after: float  # The median until the next change
    p: float

    @property
    def ratio(self) -> float:
        """The new level over the old one; 1 where that is 0."""
        return self.after / self.before if self.before else 1.0


def changes(values: Sequence[float]) -> tuple[Change, ...]:
    """Return the changes among the latest values, oldest first; none where the values are too few."""
    skipped = max(0, len(values) - LATEST)
    latest = values[skipped:]
    found = sorted(splits(latest))
    edges = [0, *(index for index, _ in found), len(latest)]
    return tuple(
        Change(
            index=skipped + index,
            before=median(latest[edges[k] : index]),
            after=median(latest[index : edges[k + 2]]),
            p=p,
        )
        for k, (index, p) in enumerate(found)
    )


def splits(values: Sequence[float]) -> list[tuple[int, float]]:
    """Return where the series is split, and how likely chance alone would have done as well."""
    if len(values) < FEWEST:
        return []
    import numpy as np

    series = np.asarray(values, float)
    return splits_by_distance(np.abs(series[:, None] - series[None, :]))


def splits_by_distance(distances: "Values") -> list[tuple[int, float]]:
    """Return the same of anything whose distances from one another are known."""
    import numpy as np

    if len(distances) < FEWEST:
        return []
    return list(divided(distances, 0, np.random.default_rng(SEED)))


def divided(distances: "Values", start: int, draws: "np.random.Generator") -> Iterator[tuple[int, float]]:
    """Split a stretch where that is no chance, and then its two sides."""
    count = len(distances)
    if count < 2 * SIDE:
        return
    at, apart = furthest(distances)
    p = chance(distances, apart, draws)
    if p > SUSPECT:
        return
    yield start + at, p
    yield from divided(distances[:at, :at], start, draws)
    yield from divided(distances[at:, at:], start + at, draws)


def furthest(distances: "Values") -> tuple[int, float]:
    """Return the split whose sides are furthest apart, and how far they are.

    Of n values before and m after it: (nm / (n + m)) * (twice the mean distance between the sides, less the
    mean distance within each).
    """
    import numpy as np

    count = len(distances)
    corner = distances.cumsum(axis=0).cumsum(axis=1)
    total = corner[-1, -1]
    n = np.arange(SIDE, count - SIDE + 1)
    m = count - n
    before = corner[n - 1, n - 1]
    across = corner[n - 1, -1] - before
    after = total - before - 2 * across
    apart = n * m / count * (2 * across / (n * m) - before / (n * (n - 1)) - after / (m * (m - 1)))
    best = int(apart.argmax())
    return int(n[best]), float(apart[best])


def chance(distances: "Values", apart: float, draws: "np.random.Generator") -> float:
    """Return how likely shuffled values are split as well; soon given up where that is clearly no rarity."""
    as_good = 0
    for _ in range(SHUFFLES):
        order = draws.permutation(len(distances))
        as_good += furthest(distances[order][:, order])[1] >= apart
        if (as_good + 1) / (SHUFFLES + 1) > SUSPECT:
            return 1.0
    return (as_good + 1) / (SHUFFLES + 1)
