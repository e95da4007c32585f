"""Whether values changed as they went: drift, a cold start, and the slope of a series over time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, combinations
from statistics import NormalDist, median

from hotloop.stats.summary import deviation

SUSPECT = 0.01  # The p below which a drift is worth a notice: one false alarm in a hundred quiet runs
EXACT_UP_TO = 100  # Values; above it the normal approximation is right to a thousandth
FIRST = 3  # Rounds that a cold start may spoil

# Distance of a cold first round from the others, in their standard deviations as the MAD estimates them.
COLD_SPREADS = 6.0

SMALLEST = 0.01  # Of the median: a cold start that costs less is not worth a word
MAD_TO_SIGMA = 1.4826


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A trend over the rounds."""

    change: float  # From the first round to the last by the Theil-Sen slope, as a share of the median
    p: float  # How often rounds in random order would rise or fall as steadily (Kendall, two-sided)

    @property
    def suspect(self) -> bool:
        return self.p < SUSPECT


def drift(values: Sequence[float]) -> Drift:
    """Test for a steady rise or fall; takes the square of the number of values in time."""
    pairs = list(combinations(range(len(values)), 2))
    if not pairs:
        return Drift(change=0.0, p=1.0)
    slope = median((values[j] - values[i]) / (j - i) for i, j in pairs)
    score = sum((values[j] > values[i]) - (values[j] < values[i]) for i, j in pairs)
    centre = abs(median(values))
    change = slope * (len(values) - 1) / centre if centre else 0.0
    return Drift(change=change, p=kendall_p(len(values), abs(score)))


def warmup_suspect(values: Sequence[float]) -> bool:
    """Whether the first rounds look unlike the rest: the very first far off, or all three beyond every other.

    In random order the latter happens in 2 of C(n, 3) cases, so at least 12 rounds are asked for.
    """
    first, rest = values[:FIRST], values[FIRST:]
    if 2 / max(1, math.comb(len(values), FIRST)) > SUSPECT:
        return False
    spread, centre = MAD_TO_SIGMA * deviation(rest), median(rest)
    far_off = abs(first[0] - centre) > max(COLD_SPREADS * spread, SMALLEST * abs(centre))
    apart = min(first) > max(rest) or max(first) < min(rest)
    return far_off or (apart and abs(median(first) - centre) > SMALLEST * abs(centre))


def without_warmup(values: Sequence[float]) -> tuple[float, ...]:
    """Return the values without the first ones, for as long as those look unlike the rest."""
    kept = tuple(values)
    while warmup_suspect(kept):
        kept = kept[FIRST:]
    return kept


def kendall_p(count: int, score: int) -> float:
    """Return the chance that a random order of `count` values has at least this |concordant - discordant|.

    Ties are counted as neither, which makes the chance too large rather than too small.
    """
    if count > EXACT_UP_TO:
        sigma = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
        return min(1.0, 2 * NormalDist().cdf(-max(0, score - 1) / sigma))
    inversions = (math.comb(count, 2) - score) // 2
    return min(1.0, 2 * sum(inversion_chances(count)[: inversions + 1]))


@cache
def inversion_chances(count: int) -> tuple[float, ...]:
    """Return the chance of each number of inversions in a random permutation of `count` values.

    The k-th value, put in last, makes 0 to k - 1 new inversions, each as likely: a moving average.
    """
    chances = [1.0]
    for k in range(2, count + 1):
        sums = list(accumulate(chances + [0.0] * (k - 1), initial=0.0))
        chances = [(sums[i] - sums[max(0, i - k)]) / k for i in range(1, len(sums))]
    return tuple(chances)


SURE = 4.0  # Standard deviations of 99.99%: a soak judges several curves, and is repeated every night
LIKELY = 1.96  # Of 95%


@dataclass(frozen=True, slots=True)
class Slope:
    """Of a series over time, with its interval."""

    estimate: float
    low: float
    high: float


def slope(times: Sequence[float], values: Sequence[float], z: float = SURE) -> Slope:
    """The slope of at least three points; the interval is Sen's, from the order of the pairs' slopes."""
    import numpy as np

    at, value = np.asarray(times, float), np.asarray(values, float)
    first, second = np.triu_indices(len(at), 1)
    apart = at[second] - at[first]
    slopes = np.sort((value[second] - value[first])[apart > 0] / apart[apart > 0])
    count, pairs = len(at), len(slopes)
    reach = z * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low, high = math.floor((pairs - reach) / 2), math.ceil((pairs + reach) / 2)
    if low < 0 or high >= pairs:
        return Slope(float(np.median(slopes)), -math.inf, math.inf)
    return Slope(float(np.median(slopes)), float(slopes[low]), float(slopes[high]))
