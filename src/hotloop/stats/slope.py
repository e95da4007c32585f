"""Slopes: how steeply a series rises, by the median over all pairs of its points (Theil and Sen)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
