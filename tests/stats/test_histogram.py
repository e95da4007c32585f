import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.stats.histogram import BUCKETS, FEWEST_FOR, RELATIVE_ERROR, Histogram, bucket, middle


@given(st.lists(st.integers(0, 2**52), min_size=1))
def test_the_middle_of_a_bucket_is_off_by_no_more_than_is_declared(values):
    for value, number in zip(values, bucket(np.array(values)).tolist(), strict=True):
        assert abs(middle(number) - value) <= value * RELATIVE_ERROR
        assert 0 <= number < BUCKETS


@given(st.lists(st.integers(0, 2**52), min_size=2))
def test_a_larger_value_is_in_no_smaller_bucket(values):
    assert (np.diff(bucket(np.sort(np.array(values)))) >= 0).all()


@pytest.mark.parametrize("sigma", [0.1, 1.0, 4.0])
def test_percentiles_are_those_of_the_sorted_values_to_the_declared_error(sigma):
    values = np.random.default_rng(7).lognormal(9.0, sigma, 1_501).astype(np.int64).tolist()
    histogram = Histogram()
    histogram.add(values[:700])
    histogram.add(values[700:])
    for share in FEWEST_FOR:
        exact = sorted(values)[int(np.ceil(share * len(values))) - 1]
        assert histogram.percentile(share) == pytest.approx(exact, rel=RELATIVE_ERROR)
    assert (histogram.count, histogram.max, histogram.total) == (len(values), max(values), sum(values))


@pytest.mark.parametrize(("share", "fewest"), FEWEST_FOR.items())
def test_a_percentile_needs_values_enough(share, fewest):
    histogram = Histogram()
    histogram.add([7] * (fewest - 1))
    assert histogram.percentile(share) is None
    histogram.add([7])
    assert histogram.percentile(share) == 7.0


def test_the_99th_percentile_needs_a_thousand_and_the_95th_two_hundred():
    assert (FEWEST_FOR[0.99], FEWEST_FOR[0.95]) == (1_000, 200)


def test_a_percentile_is_never_above_the_largest_value():
    histogram = Histogram()
    histogram.add([1_000_001] * 30)
    assert histogram.percentile(0.5) <= 1_000_001


def test_nothing_and_less_than_nothing_can_be_added():
    histogram = Histogram()
    histogram.add([])
    assert (histogram.count, histogram.max) == (0, 0)
    histogram.add([-5])
    assert (histogram.count, histogram.max, histogram.total) == (1, 0, 0)


def test_its_memory_does_not_grow():
    histogram = Histogram()
    before = histogram._counts.nbytes
    histogram.add(np.random.default_rng(1).integers(0, 2**50, 100_000))
    assert histogram._counts.nbytes == before
