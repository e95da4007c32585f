"""Exact intervals, and the few looks at which a measurement that still goes on may be judged."""

from collections.abc import Iterable, Sequence
from functools import cache
from math import ceil

FEWEST = 6  # Values for 95%: of five, one side alone has none in 2 of 32 cases; of six, in 2 of 64

# How rarely the interval may miss the median by default: in 5% of cases at most.
ONE_MISS_IN = 20

RESAMPLES = 2_000

SEED = 20_240_229

TAILS = (0.025, 0.975)


def sign_interval(values: Iterable[float], one_miss_in: int = ONE_MISS_IN) -> tuple[float, float] | None:
    """The narrowest symmetric interval that misses the median so rarely; None where values are too few."""
    ordered = sorted(values)
    rank = sign_rank(len(ordered), one_miss_in)
    return (ordered[rank - 1], ordered[-rank]) if rank else None


@cache
def sign_rank(count: int, one_miss_in: int = ONE_MISS_IN) -> int:
    """Return the largest k whose interval misses rarely enough; 0 if even the extremes miss too often."""
    rank, misses, term = 0, 0, 1  # of 2**count equally likely outcomes, on one side
    while 2 * one_miss_in * (misses + term) <= 2**count:
        misses += term
        term = term * (count - rank) // (rank + 1)
        rank += 1
    return rank


def share_interval(share: float, samples: int) -> str:
    """Return the interval of a share of so many samples as text; empty if there are none."""
    around = wilson_interval(share * samples, samples) if samples else None
    return f"[{around[0]:.1%}, {around[1]:.1%}]" if around else ""


def wilson_interval(wins: float, count: int) -> tuple[float, float]:
    """Return the interval of a share in 95% of cases, by Wilson's score; a draw is half a win."""
    if count == 0:
        return 0.0, 1.0
    z = 1.959963984540054
    share, spread = wins / count, z * z / count
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * (share * (1 - share) / count + spread / (4 * count)) ** 0.5
    return max(centre - half, 0.0), min(centre + half, 1.0)


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


# Pairs of the first look: the second smallest and the second largest of them are seldom enough wrong.
FIRST = 18

GROWTH = 1.25  # How many times as many rounds there are at the next look
LOOKS = 40  # At most: from 18 rounds on they reach beyond 100,000
EARLY_MISS_IN = 4_000  # How rarely the interval of one look may miss
FINAL_MISS_IN = 25  # How rarely that of the end may: together with 40 in 4,000 that is one in 20


def next_look(rounds: int, block: int = 1) -> int:
    """Return the rounds at which to look again, in whole blocks."""
    return ceil(max(rounds + 1, rounds * GROWTH) / block) * block
