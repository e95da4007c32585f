import random

from hotloop.stats.intervals import mean_interval


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
