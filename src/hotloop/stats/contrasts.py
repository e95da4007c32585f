"""Contrasts: many differences of pairs judged together, by flipping signs.

Where two sides do the same, each pair could as well have come the other way round. Under random flips the
largest of all studentised means is seen as often as chance makes it so large, however the means depend on
each other; its quantile makes intervals that hold for all of them at once (Westfall and Young, 1993).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

FLIPS = 2_000

ONE_FALSE_IN = 100  # How rarely any interval of a family misses where there is no difference at all

# Standard errors beyond the critical value from which a mean is found with 84%: four times in five, and some
# room for having to be found twice.
SEEN_Z = 1.0

AT_ONCE = 1_024  # Columns whose flips are made together
SEED = 20_240_301


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrasts:
    """Means of differences, all of one family."""

    means: "Numbers"
    errors: "Numbers"  # Standard errors of the means
    critical: "Numbers"  # How many of them an interval reaches to either side; one number a tier

    @property
    def lows(self) -> "Numbers":
        return self.means - self.critical * self.errors

    @property
    def highs(self) -> "Numbers":
        return self.means + self.critical * self.errors

    @property
    def visible(self) -> "Numbers":
        """Sizes from which a difference is found four times in five."""
        return (self.critical + SEEN_Z) * self.errors

    def beyond(self, margins: "Numbers") -> "NDArray[np.bool_]":
        """Whose whole interval lies further from nothing than its margin."""
        return (self.lows > margins) | (self.highs < -margins)


def contrasts(
    blocks: "Sequence[Numbers]", tiers: "NDArray[np.int64] | None" = None, one_false_in: int = ONE_FALSE_IN
) -> Contrasts:
    """Judge the columns of all blocks [pairs, columns] together; the pairs of a block are flipped as one.

    `tiers` numbers the columns of all blocks: each tier has its own critical value and its share of what may
    be found by chance, so that few numbers are not hidden behind many.
    """
    import numpy as np

    ends = np.cumsum([0, *(block.shape[1] for block in blocks)])
    mine = np.zeros(ends[-1], np.int64) if tiers is None else tiers
    random, largest = np.random.default_rng(SEED), np.zeros((int(mine.max(initial=0)) + 1, FLIPS))
    for block, begin in zip(blocks, ends, strict=False):
        signs = random.choice([-1.0, 1.0], (FLIPS, len(block)))
        for tier in range(len(largest)):
            chosen = np.flatnonzero(mine[begin : begin + block.shape[1]] == tier)
            for first in range(0, len(chosen), AT_ONCE):
                seen = flipped(block[:, chosen[first : first + AT_ONCE]], signs)
                largest[tier] = np.maximum(largest[tier], seen)
    rank = max(FLIPS // (one_false_in * len(largest)), 1)
    return Contrasts(
        means=np.concatenate([block.mean(axis=0) for block in blocks]),
        errors=np.concatenate([block.std(axis=0, ddof=1) / np.sqrt(len(block)) for block in blocks]),
        critical=np.partition(largest, -rank, axis=1)[:, -rank][mine],
    )


def flipped(block: "Numbers", signs: "Numbers") -> "Numbers":
    """Return the largest studentised mean of each flip."""
    import numpy as np

    pairs = len(block)
    scale = np.sqrt((block**2).sum(axis=0))
    unit = block[:, scale > 0] / scale[scale > 0]
    if not unit.size:
        return np.zeros(len(signs))
    sums = signs @ unit
    # Of a column of length 1: its mean is sum/pairs, its error squared (1 - sum²/pairs)/pairs/(pairs - 1).
    spread = np.maximum(1 - sums**2 / pairs, 1 / pairs) / (pairs - 1)
    found: Numbers = np.abs(sums / np.sqrt(pairs * spread)).max(axis=1)
    return found
