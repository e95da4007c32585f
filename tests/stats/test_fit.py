import math
import random
from collections.abc import Callable

import pytest

from hotloop.stats.fit import crossing, fit, knee

SIZES = (10, 50, 100, 500, 1000)

LAWS: dict[str, tuple[Callable[[float], float], str]] = {
    "n": (lambda n: n, "linear"),
    "n log n": (lambda n: n * math.log(n + 1), "n log n"),
    "n squared": (lambda n: n * n, "quadratic"),
    "constant and n": (lambda n: 200 + n, "linear"),
    "constant": (lambda _: 5.0, "constant"),
    "log n": (lambda n: math.log(n + 1), "log"),
}


def noisy(law: Callable[[float], float], seed: int, repeats: int = 5) -> dict[float, list[float]]:
    """Values with a noise of 10%."""
    chance = random.Random(seed)
    return {n: [law(n) * math.exp(chance.gauss(0, 0.1)) for _ in range(repeats)] for n in SIZES}


@pytest.mark.parametrize("name", LAWS)
def test_a_law_without_noise_is_found_by_its_name(name: str) -> None:
    law, word = LAWS[name]
    found = fit({n: [law(n)] * 3 for n in SIZES})
    assert found is not None
    assert found.law == word
    assert found.at(70) == pytest.approx(law(70), rel=1e-3)


@pytest.mark.parametrize("name", LAWS)
def test_the_exponents_interval_holds_the_truth_in_19_of_20_seeds(name: str) -> None:
    law, word = LAWS[name]
    clean = fit({n: [law(n)] for n in SIZES})
    assert clean is not None
    held = named = 0
    for seed in range(20):
        found = fit(noisy(law, seed))
        assert found is not None
        held += found.low <= clean.exponent <= found.high
        named += word in (found.law, *found.also)
    assert held >= 19
    assert named >= 19


def test_a_square_is_never_called_linear() -> None:
    for seed in range(10):
        found = fit(noisy(lambda n: n * n, seed))
        assert found is not None
        assert "linear" not in (found.law, *found.also)
        assert found.low > 1.5


def test_what_follows_no_law_by_name_is_a_power() -> None:
    found = fit({n: [n**1.5 * k for k in (0.95, 1.0, 1.05)] for n in (10, 30, 100, 300, 1000, 3000)})
    assert found is not None
    assert found.law == "power"
    assert found.low <= 1.5 <= found.high
    assert found.high - found.low < 0.1


def test_a_cost_that_falls_has_a_negative_exponent() -> None:
    found = fit({n: [100 / n * k for k in (0.98, 1.0, 1.02)] for n in SIZES})
    assert found is not None
    assert found.high < -0.9


def test_of_two_sizes_only_their_ratio_is_known() -> None:
    found = fit({10: [10, 11, 9], 100: [100, 110, 90]})
    assert found is not None
    assert found.law == "power"
    assert found.low < 1 < found.high


def test_one_size_or_no_cost_has_no_law() -> None:
    assert fit({10: [1.0]}) is None
    assert fit({10: [1.0], 20: [0.0]}) is None


def test_one_curve_overtakes_another_between_the_sizes_where_that_is_sure() -> None:
    slow = {n: [10 * n * k for k in (0.9, 1.1)] for n in SIZES}
    flat = {n: [800 * k for k in (0.9, 1.1)] for n in SIZES}
    found = crossing(slow, flat)
    assert found is not None
    assert found.between == (50, 100)
    assert 60 < found.size < 95
    assert crossing(flat, slow) is None


def test_curves_that_touch_within_their_spread_have_not_crossed() -> None:
    assert crossing({1: [1, 3], 2: [3, 5]}, {1: [2, 4], 2: [2, 4]}) is None


def test_the_knee_is_where_the_speed_has_come_near_its_best() -> None:
    assert knee({1: [10], 2: [19], 4: [30], 8: [31], 16: [31]}) == 4
    assert knee({1: [10], 2: [20], 4: [40]}) is None
    assert knee({1: [10], 2: [10.5], 4: [11]}) is None


def test_four_sizes_with_steady_repeats_that_lie_a_little_beside_the_line_are_linear() -> None:
    means = {10: 4.78, 30: 16.17, 100: 55.58, 300: 159.3}  # of a loop of n turns, in microseconds
    found = fit({size: [mean * (1 + k / 1000) for k in range(5)] for size, mean in means.items()})
    assert found is not None
    assert found.law == "linear"
    assert found.low <= 1 <= found.high
    assert "constant" not in found.also
    assert "quadratic" not in found.also


@pytest.mark.parametrize(
    "points",
    [
        {1.0: [1.0], 10.0: [18.0]},
        {10.0: [1.0], 50.0: [5.0], 100.0: [18.0]},
        {1.0: [1.0, 1.4, 0.6], 2.0: [30.0, 10.0, 50.0], 3.0: [2.0, 3.0, 1.0]},
    ],
)
def test_values_that_allow_any_exponent_have_no_law(points: dict[float, list[float]]) -> None:
    found = fit(points)
    assert found is not None
    assert (found.law, found.also) == ("unknown", ())


def test_what_grows_eighteen_fold_is_never_constant() -> None:
    chance = random.Random(7)
    sizes = {1.0: 1.0, 2.0: 1.1, 4.0: 18.0}
    for _ in range(20):
        found = fit(
            {n: [cost * math.exp(chance.gauss(0, 0.5)) for _ in range(3)] for n, cost in sizes.items()}
        )
        assert found is not None
        assert "constant" not in (found.law, *found.also)
