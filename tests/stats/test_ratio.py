import random
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.errors import InputError
from hotloop.stats.ratio import ratio

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
