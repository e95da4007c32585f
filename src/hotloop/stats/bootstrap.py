"""Intervals of what has no order statistic: the values are drawn from again and again, by a fixed seed."""

from collections.abc import Sequence

from hotloop.stats.sign import FEWEST

RESAMPLES = 2_000
SEED = 20_240_229
TAILS = (0.025, 0.975)


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The interval that holds the mean in 95% of cases (percentile bootstrap); None below six values."""
    if len(values) < FEWEST:
        return None
    import numpy as np

    draws = np.random.default_rng(SEED)
    given = np.asarray(values, float)
    means = [given[draws.integers(given.size, size=given.size)].mean() for _ in range(RESAMPLES)]
    low, high = np.quantile(means, TAILS)
    return float(low), float(high)
