"""The interval of a paired comparison holds the true ratio as often as it says, however ugly the noise."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from hotloop.stats.intervals import sign_rank
from hotloop.stats.ratio import ratio

TRIALS = 1_000
TRUE = 1.03
Noise = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]


def heavy_tails(random: np.random.Generator, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Times with a tail so heavy that they have no mean: a busy neighbour."""
    return tuple(1 + random.pareto(0.9, pairs) for _ in range(2))


def drift(random: np.random.Generator, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """The whole machine slows down by half in the course of the run."""
    trend = np.linspace(1.0, 1.5, pairs)
    return tuple(trend * np.exp(random.normal(0, 0.02, pairs)) for _ in range(2))


def bursts(random: np.random.Generator, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Stretches of rounds in which everything takes three times as long, and single turns that do."""
    burst = np.repeat(np.where(random.random(pairs) < 0.2, 3.0, 1.0), 5)[:pairs]
    return tuple(
        burst * np.where(random.random(pairs) < 0.1, 3.0, 1.0) * np.exp(random.normal(0, 0.03, pairs))
        for _ in range(2)
    )


def exact_coverage(pairs: int) -> float:
    """The chance that the k-th smallest and k-th largest of n enclose the median."""
    misses = sum(math.comb(pairs, k) for k in range(sign_rank(pairs)))
    return 1 - 2 * misses / 2**pairs


@pytest.mark.parametrize("pairs", [6, 20, 60])
@pytest.mark.parametrize("noise", [heavy_tails, drift, bursts])
def test_the_interval_covers_the_truth_as_often_as_it_says(noise: Noise, pairs: int) -> None:
    random = np.random.default_rng([20_240_229, pairs])
    hits = 0
    for _ in range(TRIALS):
        a, b = noise(random, pairs)
        found = ratio(list(TRUE * a), list(b))
        hits += found.low <= TRUE <= found.high
    expected = exact_coverage(pairs)
    error = 4 * math.sqrt(expected * (1 - expected) / TRIALS)
    assert expected >= 0.95
    assert abs(hits / TRIALS - expected) < error


def test_several_at_once_hold_together() -> None:
    """Ten phases of pure noise: in at least 95% of the runs all ten intervals hold 1."""
    random = np.random.default_rng(5)
    wrong = 0
    for _ in range(300):
        phases = [np.exp(random.normal(0, 0.1, (2, 40))) for _ in range(10)]
        found = [ratio(list(a), list(b), together=10) for a, b in phases]
        wrong += any(not each.low <= 1 <= each.high for each in found)
    assert wrong / 300 < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 300)
