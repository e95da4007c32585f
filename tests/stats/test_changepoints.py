import random

import pytest

from hotloop.stats.summary import FEWEST_LEVELS, LATEST, changes

SEEDS = range(40)


def noisy(seed: int, count: int = 100) -> list[float]:
    """A speed with a spread of 1.5%."""
    dice = random.Random(seed)
    return [1e6 * dice.gauss(1, 0.015) for _ in range(count)]


def test_a_step_of_three_percent_is_found_where_it_is_in_nine_of_ten() -> None:
    found = 0
    for seed in SEEDS:
        at = random.Random(-1 - seed).randrange(15, 85)
        values = [value * (1.03 if index >= at else 1) for index, value in enumerate(noisy(seed))]
        seen = changes(values)
        found += len(seen) == 1 and abs(seen[0].index - at) <= 2
    assert found >= 0.9 * len(SEEDS)


def test_nothing_is_found_where_nothing_is_in_nine_of_ten() -> None:
    assert sum(not changes(noisy(seed)) for seed in SEEDS) >= 0.9 * len(SEEDS)


def test_a_change_has_its_place_and_the_levels_around_it() -> None:
    values = (
        [100.0 + k % 3 for k in range(20)]
        + [80.0 + k % 3 for k in range(20)]
        + [90.0 + k % 3 for k in range(20)]
    )
    first, second = changes(values)
    assert (first.index, second.index) == (20, 40)
    assert (first.before, first.after, second.after) == (101.0, 81.0, 91.0)
    assert first.ratio == pytest.approx(81 / 101)


def test_too_little_history_says_nothing_and_only_the_latest_is_looked_at() -> None:
    assert changes([1.0] * 5 + [2.0] * (FEWEST_LEVELS - 6)) == ()
    assert changes([1.0] * 30) == ()
    values = [1.0 + k % 2 / 100 for k in range(LATEST)] + [2.0 + k % 2 / 100 for k in range(30)]
    assert [change.index for change in changes(values)] == [LATEST]
