import random
from math import comb, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.stats.summary import FEWEST, mean_interval, sign_interval, sign_rank

KNOWN_RANKS = {6: 1, 8: 1, 9: 2, 11: 2, 12: 3, 15: 4, 20: 6, 25: 8, 30: 10, 50: 18, 100: 40}
"""Printed in tables of the sign test, at 5% on both sides together."""


def coverage(count: int, rank: int) -> float:
    return 1 - 2 * sum(comb(count, k) for k in range(rank)) / 2**count


@pytest.mark.parametrize(("count", "rank"), KNOWN_RANKS.items())
def test_ranks_agree_with_printed_tables(count, rank):
    assert sign_rank(count) == rank


@pytest.mark.parametrize("count", range(FEWEST, 200))
def test_the_rank_is_the_largest_that_keeps_95_percent(count):
    rank = sign_rank(count)
    assert coverage(count, rank) >= 0.95 > coverage(count, rank + 1)


@pytest.mark.parametrize("count", range(FEWEST))
def test_below_six_values_there_is_no_interval(count):
    assert sign_interval([1.0] * count) is None


def test_six_values_give_their_range():
    assert sign_interval([3, 1, 6, 2, 5, 4]) == (1, 6)


@given(st.lists(st.floats(allow_nan=False), min_size=FEWEST, max_size=60))
def test_the_interval_holds_the_middle_and_stays_inside_the_values(values):
    low, high = sign_interval(values)
    ordered = sorted(values)
    assert ordered[0] <= low <= ordered[(len(values) - 1) // 2]
    assert ordered[len(values) // 2] <= high <= ordered[-1]


@pytest.mark.parametrize("count", [6, 12, 20, 24])
@pytest.mark.parametrize(
    "draw", [random.Random.random, lambda r: r.lognormvariate(0, 2)], ids=["flat", "skewed"]
)
def test_the_median_is_covered_as_often_as_the_binomial_says(count, draw):
    dice = random.Random(20250101)
    trials = 4000
    true_median = 0.5 if draw is random.Random.random else 1.0
    intervals = (sign_interval([draw(dice) for _ in range(count)]) for _ in range(trials))
    covered = sum(low <= true_median <= high for low, high in intervals) / trials
    exact = coverage(count, sign_rank(count))
    assert abs(covered - exact) < 4 * sqrt(exact * (1 - exact) / trials)


@pytest.mark.parametrize(("one_miss_in", "fewest"), [(10, 5), (20, 6), (40, 7)])
def test_a_rarer_miss_takes_more_values(one_miss_in, fewest):
    assert sign_interval(range(fewest - 1), one_miss_in) is None
    assert sign_interval(range(fewest), one_miss_in) == (0, fewest - 1)
    for count in range(fewest, 100):
        rank = sign_rank(count, one_miss_in)
        assert coverage(count, rank) >= 1 - 1 / one_miss_in > coverage(count, rank + 1)


def test_an_interval_holds_the_mean_of_where_the_values_come_from_nearly_always() -> None:
    source = random.Random(3)
    held = 0
    for _ in range(40):
        interval = mean_interval([source.expovariate(0.5) for _ in range(40)])
        assert interval is not None
        held += interval[0] <= 2.0 <= interval[1]
    assert 34 <= held <= 40


def test_the_same_values_have_the_same_interval() -> None:
    values = [1.0, 2.0, 3.0, 5.0, 8.0, 13.0]
    assert mean_interval(values) == mean_interval(values)


def test_equal_values_have_an_interval_without_width() -> None:
    assert mean_interval([2.5] * 6) == (2.5, 2.5)


def test_five_values_have_none() -> None:
    assert mean_interval([1.0, 2.0, 3.0, 4.0, 5.0]) is None
