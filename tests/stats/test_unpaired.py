import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.stats.intervals import sign_interval
from hotloop.stats.ratio import EACH_MISS_IN, FEWEST_APART, apart

times = st.lists(st.floats(min_value=1, max_value=1e6), min_size=FEWEST_APART, max_size=40)


def test_the_ratio_is_that_of_the_medians_and_no_pair_was_measured() -> None:
    found = apart([20.0] * 7, [10.0] * 9)
    assert found is not None
    assert (found.estimate, found.low, found.high, found.pairs) == (2.0, 2.0, 2.0, 0)


@pytest.mark.parametrize(("a", "b"), [(6, 20), (20, 6), (0, 20)])
def test_fewer_than_seven_values_on_either_side_give_nothing(a: int, b: int) -> None:
    assert apart([1.0] * a, [1.0] * b) is None


@given(times, times)
def test_the_other_way_round_is_the_inverse(a: list[float], b: list[float]) -> None:
    one, other = apart(a, b), apart(b, a)
    assert one is not None
    assert other is not None
    assert one.low == pytest.approx(1 / other.high)
    assert one.low <= one.estimate <= one.high


@given(times, times)
def test_the_interval_is_wider_than_what_both_medians_allow(a: list[float], b: list[float]) -> None:
    found = apart(a, b)
    around_a, around_b = sign_interval(a, EACH_MISS_IN), sign_interval(b, EACH_MISS_IN)
    assert found is not None
    assert around_a is not None
    assert around_b is not None
    assert found.low <= around_a[0] / around_b[1]
    assert found.high >= around_a[1] / around_b[0]


def test_doubt_widens_both_ends() -> None:
    found = apart([10.0] * 7, [10.0] * 7, doubt=3.0)
    assert found is not None
    assert (found.low, found.high) == (1 / 3, 3.0)


@pytest.mark.parametrize("spread", [0.01, 0.05, 0.10])
def test_runs_whose_level_moves_as_much_as_their_rounds_vary_are_rarely_told_apart(spread: float) -> None:
    """Two runs of one code on one machine: one in twenty may be called faster or slower by chance."""
    draws = random.Random(1)

    def run() -> list[float]:
        level = draws.gauss(1, spread)
        return [level * draws.gauss(1, spread) for _ in range(20)]

    found = [apart(run(), run()) for _ in range(400)]
    assert sum(ratio is not None and not ratio.low <= 1 <= ratio.high for ratio in found) <= 20


def test_a_change_larger_than_the_spread_of_runs_is_seen() -> None:
    draws = random.Random(1)
    a, b = ([level * draws.gauss(1, 0.02) for _ in range(20)] for level in (1.2, 1.0))
    found = apart(a, b)
    assert found is not None
    assert found.low > 1.05
