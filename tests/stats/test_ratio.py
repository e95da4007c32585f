import math
import random
from collections.abc import Callable
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.errors import InputError
from hotloop.core.record.comparison import Ratio
from hotloop.stats.summary import (
    EACH_MISS_IN,
    FEWEST_APART,
    confirms,
    half_width,
    more_pairs,
    outcome,
    ratio,
    sign_interval,
    sign_rank,
    unpaired_ratio,
    visible,
    within_self_noise,
)

times = st.floats(1.0, 1e12)
pairs = st.lists(st.tuples(times, times), min_size=6, max_size=40)


def test_a_side_twice_as_slow_has_ratio_two():
    seen = ratio([200, 220, 180, 400, 202, 210], [100, 110, 90, 200, 101, 105])
    assert (seen.estimate, seen.low, seen.high) == (pytest.approx(2), pytest.approx(2), pytest.approx(2))
    assert seen.pairs == 6


@given(pairs)
def test_the_estimate_lies_in_its_interval(rounds):
    seen = ratio(*zip(*rounds, strict=True))
    assert seen.low <= seen.estimate <= seen.high


@given(pairs)
def test_swapping_the_sides_inverts_the_ratio(rounds):
    a_ns, b_ns = zip(*rounds, strict=True)
    there, back = ratio(a_ns, b_ns), ratio(b_ns, a_ns)
    assert back.estimate == pytest.approx(1 / there.estimate)
    assert (back.low, back.high) == (pytest.approx(1 / there.high), pytest.approx(1 / there.low))


@given(pairs, st.floats(0.1, 10))
def test_what_slows_both_sides_of_a_round_cancels(rounds, slowdown):
    a_ns, b_ns = zip(*rounds, strict=True)
    slower = ratio([a * slowdown for a in a_ns], [b * slowdown for b in b_ns])
    assert slower.estimate == pytest.approx(ratio(a_ns, b_ns).estimate)


def test_identical_sides_are_called_different_in_at_most_one_case_of_twenty():
    dice = random.Random(7)
    trials, pairs_each, alarms = 2000, 12, 0
    for _ in range(trials):
        noise = [exp(dice.gauss(0, 0.3)) for _ in range(pairs_each)]
        a_ns = [1e6 * n * exp(dice.gauss(0, 0.02)) for n in noise]
        b_ns = [1e6 * n * exp(dice.gauss(0, 0.02)) for n in noise]
        seen = ratio(a_ns, b_ns)
        alarms += not seen.low <= 1 <= seen.high
    assert alarms / trials <= 0.05


def test_fewer_than_six_pairs_are_refused():
    with pytest.raises(InputError, match="5 pairs are too few for an interval: measure at least 6"):
        ratio([1.0] * 5, [1.0] * 5)


def test_sides_of_different_length_are_no_pairs():
    with pytest.raises(InputError, match="7 times of A and 6 of B"):
        ratio([1.0] * 7, [1.0] * 6)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan")])
def test_a_time_that_is_not_positive_is_refused(bad):
    with pytest.raises(InputError, match="zero or less"):
        ratio([1.0] * 6, [1.0] * 5 + [bad])


series = st.lists(st.floats(min_value=1, max_value=1e6), min_size=FEWEST_APART, max_size=40)


def test_the_ratio_is_that_of_the_medians_and_no_pair_was_measured() -> None:
    found = unpaired_ratio([20.0] * 7, [10.0] * 9)
    assert found is not None
    assert (found.estimate, found.low, found.high, found.pairs) == (2.0, 2.0, 2.0, 0)


@pytest.mark.parametrize(("a", "b"), [(6, 20), (20, 6), (0, 20)])
def test_fewer_than_seven_values_on_either_side_give_nothing(a: int, b: int) -> None:
    assert unpaired_ratio([1.0] * a, [1.0] * b) is None


@given(series, series)
def test_the_other_way_round_is_the_inverse(a: list[float], b: list[float]) -> None:
    one, other = unpaired_ratio(a, b), unpaired_ratio(b, a)
    assert one is not None
    assert other is not None
    assert one.low == pytest.approx(1 / other.high)
    assert one.low <= one.estimate <= one.high


@given(series, series)
def test_the_interval_is_wider_than_what_both_medians_allow(a: list[float], b: list[float]) -> None:
    found = unpaired_ratio(a, b)
    around_a, around_b = sign_interval(a, EACH_MISS_IN), sign_interval(b, EACH_MISS_IN)
    assert found is not None
    assert around_a is not None
    assert around_b is not None
    assert found.low <= around_a[0] / around_b[1] * (1 + 1e-9)
    assert found.high >= around_a[1] / around_b[0] * (1 - 1e-9)


def test_doubt_widens_both_ends() -> None:
    found = unpaired_ratio([10.0] * 7, [10.0] * 7, doubt=3.0)
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(1 / 3), pytest.approx(3.0))


def test_a_few_slow_rounds_hide_no_large_change() -> None:
    """One round in ten took 60 times as long, as beside a busy neighbor; their spread is over 100%."""
    a = [1.0 + k / 100 for k in range(18)] + [60.0, 60.0]
    found = unpaired_ratio(a, [6.4 * each for each in a])
    assert found is not None
    assert found.low < 1 / 6.4 < found.high < 0.3


@pytest.mark.parametrize("spread", [0.01, 0.05, 0.10])
def test_runs_whose_level_moves_as_much_as_their_rounds_vary_are_rarely_told_apart(spread: float) -> None:
    """Two runs of one code on one machine: one in twenty may be called faster or slower by chance."""
    draws = random.Random(1)

    def run() -> list[float]:
        level = draws.gauss(1, spread)
        return [level * draws.gauss(1, spread) for _ in range(20)]

    found = [unpaired_ratio(run(), run()) for _ in range(400)]
    assert sum(ratio is not None and not ratio.low <= 1 <= ratio.high for ratio in found) <= 20


def test_a_change_larger_than_the_spread_of_runs_is_seen() -> None:
    draws = random.Random(1)
    a, b = ([level * draws.gauss(1, 0.02) for _ in range(20)] for level in (1.2, 1.0))
    found = unpaired_ratio(a, b)
    assert found is not None
    assert found.low > 1.05


def of(low: float, high: float, pairs: int = 30) -> Ratio:
    return Ratio(estimate=math.sqrt(low * high), low=low, high=high, pairs=pairs)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.03, 1.10, "faster"),
        (1.01, 1.10, "cannot tell"),
        (0.99, 1.01, "same"),
        (0.97, 1.01, "cannot tell"),
        (0.90, 0.95, "slower"),
        (0.90, 0.99, "cannot tell"),
        (0.90, 1.10, "cannot tell"),
    ],
)
def test_a_verdict_needs_the_whole_interval_on_one_side_of_the_band(low, high, expected):
    assert outcome(of(low, high), 0.02) == expected


def test_the_band_is_as_wide_downwards_as_upwards():
    assert outcome(of(1.021, 1.03), 0.02) == "faster"
    assert outcome(of(1 / 1.03, 1 / 1.021), 0.02) == "slower"
    assert outcome(of(0.97, 0.9802), 0.02) == "slower"  # 1 / 1.02 is a little more than 0.98


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(0.93, 0.97, True), (0.95, 1.001, False), (0.985, 0.999, False)]
)
def test_a_second_run_agrees_where_it_is_beyond_the_band_and_surely_not_equal(low, high, expected):
    assert confirms("slower", of(low, high), 0.02) is expected
    assert confirms("faster", of(1 / high, 1 / low), 0.02) is expected


def test_half_the_width_is_the_same_up_and_down():
    assert half_width(of(1 / 1.05, 1.05)) == pytest.approx(0.05)


def test_what_can_be_seen_is_the_band_and_the_noise_on_top_of_it():
    assert visible(of(1 / 1.01, 1.01), 0.02) == pytest.approx(1.02 * 1.01 - 1)


def test_four_times_the_rounds_halve_the_interval():
    unsettled = Ratio(estimate=1.0, low=1 / 1.02**2, high=1.02**2, pairs=100)
    assert more_pairs(unsettled, 0.02) == 300


def test_no_number_of_rounds_settles_what_lies_on_the_edge():
    assert more_pairs(Ratio(estimate=1.02, low=1.0, high=1.04, pairs=50), 0.02) is None


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


@pytest.mark.parametrize(
    ("low", "high", "noise", "expected"),
    [
        (1.5, 1.6, 1.10, False),  # half as much again is more than three times a tenth
        (1.2, 1.3, 1.10, True),
        (0.3, 0.5, 0.90, False),
        (0.9, 1.1, 1.10, True),
        (1.03, 1.04, 1.00, False),
    ],
)
def test_what_a_side_differs_from_itself_by_drowns_only_what_it_may_explain(low, high, noise, expected):
    change = Ratio(estimate=(low * high) ** 0.5, low=low, high=high, pairs=40)
    itself = Ratio(estimate=noise, low=noise * 0.995, high=noise * 1.005, pairs=40)
    assert within_self_noise(change, itself, 0.02) is expected
