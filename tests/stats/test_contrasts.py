import numpy as np
import pytest

from hotloop.stats.contrasts import contrasts

PAIRS, COLUMNS = 64, 40


def block(seed: int, shift: float = 0.0) -> np.ndarray:
    """Skewed, dependent columns, the first of them shifted."""
    random = np.random.default_rng(seed)
    common = random.normal(size=(PAIRS, 1))
    drawn = common + random.normal(size=(PAIRS, COLUMNS)) * random.exponential(size=(1, COLUMNS))
    drawn[:, 0] += shift
    return drawn


def test_where_there_is_nothing_little_is_found_by_chance() -> None:
    families = [contrasts([block(seed), block(seed + 500)]) for seed in range(40)]
    assert sum(bool(each.beyond(np.zeros(2 * COLUMNS)).any()) for each in families) <= 2


def test_a_difference_of_the_stated_size_is_found_four_times_in_five() -> None:
    seen = 0
    for seed in range(40):
        size = contrasts([block(seed)]).visible[0]
        seen += bool(contrasts([block(seed + 1_000, size)]).beyond(np.zeros(COLUMNS))[0])
    assert seen >= 30


def test_a_shift_without_any_spread_is_beyond_chance() -> None:
    told = contrasts([np.column_stack([np.full(PAIRS, 0.5), np.zeros(PAIRS)])])
    assert told.beyond(np.zeros(2)).tolist() == [True, False]
    assert told.lows[0] == pytest.approx(0.5)


def test_what_is_within_its_margin_is_no_difference() -> None:
    told = contrasts([np.full((PAIRS, 1), 1e-9)])
    assert not told.beyond(np.array([1e-6]))[0]


def test_few_numbers_are_not_hidden_behind_many() -> None:
    random = np.random.default_rng(1)
    drawn = random.normal(size=(PAIRS, 2_001))
    tiers = np.repeat([0, 1], [1, 2_000])
    told = contrasts([drawn], tiers)
    assert told.critical[0] < told.critical[1]
