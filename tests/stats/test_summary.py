import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.errors import InputError
from hotloop.stats.summary import label, summarise

rounds = st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=50)


def test_a_summary_of_known_values():
    seen = summarise([1, 2, 3, 4, 5, 6, 27])
    assert (seen.median, seen.min, seen.max, seen.mad) == (4, 1, 27, 2)
    assert seen.mean == pytest.approx(48 / 7)
    assert seen.cv == pytest.approx(statistics.stdev([1, 2, 3, 4, 5, 6, 27]) / (48 / 7))
    assert seen.ci95 == (1, 27)


def test_the_standard_deviation_is_that_of_a_sample():
    assert summarise([9.0, 11.0]).cv == pytest.approx(2**0.5 / 10)


def test_one_value_has_no_spread_to_tell_of():
    seen = summarise([3.0])
    assert (seen.median, seen.cv, seen.ci95, seen.mad) == (3.0, None, None, 0.0)


def test_a_mean_of_zero_has_no_relative_spread():
    assert summarise([-1.0, 1.0]).cv is None


@pytest.mark.parametrize("values", [[], [1.0, float("nan")], [float("inf")]])
def test_what_is_no_finite_number_is_refused(values):
    with pytest.raises(InputError, match="expected one finite number or more"):
        summarise(values)


@given(rounds)
def test_a_summary_stays_inside_its_values(values):
    seen = summarise(values)
    assert seen.min <= seen.median <= seen.max
    assert seen.min <= seen.mean * (1 + 1e-12)
    assert seen.mean <= seen.max * (1 + 1e-12)


@given(rounds, st.randoms())
def test_the_order_of_the_values_does_not_matter(values, dice):
    shuffled = dice.sample(values, len(values))
    seen, again = summarise(values), summarise(shuffled)
    assert (again.median, again.ci95, again.mad) == (seen.median, seen.ci95, seen.mad)


@pytest.mark.parametrize(
    ("cv", "word"),
    [
        (0.0, "excellent"),
        (0.049, "excellent"),
        (0.05, "good"),
        (0.099, "good"),
        (0.10, "fair"),
        (0.199, "fair"),
        (0.20, "unstable"),
        (3.0, "unstable"),
        (None, "unknown"),
    ],
)
def test_a_spread_has_a_word(cv, word):
    assert label(cv) == word
