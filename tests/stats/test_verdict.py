import math

import pytest

from hotloop.core.record import Ratio
from hotloop.stats.ratio import agrees_slower, half_width, more_pairs, outcome, visible


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
    assert agrees_slower(of(low, high), 0.02) is expected


def test_half_the_width_is_the_same_up_and_down():
    assert half_width(of(1 / 1.05, 1.05)) == pytest.approx(0.05)


def test_what_can_be_seen_is_the_band_and_the_noise_on_top_of_it():
    assert visible(of(1 / 1.01, 1.01), 0.02) == pytest.approx(1.02 * 1.01 - 1)


def test_four_times_the_rounds_halve_the_interval():
    unsettled = Ratio(estimate=1.0, low=1 / 1.02**2, high=1.02**2, pairs=100)
    assert more_pairs(unsettled, 0.02) == 300


def test_no_number_of_rounds_settles_what_lies_on_the_edge():
    assert more_pairs(Ratio(estimate=1.02, low=1.0, high=1.04, pairs=50), 0.02) is None
