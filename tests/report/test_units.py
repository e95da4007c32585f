import pytest

from hotloop.report.section import (
    count,
    digits,
    percent,
    plain,
    ratio_interval,
    sparkline,
    speed,
    speed_interval,
    took,
)


@pytest.mark.parametrize(
    ("per_second", "shown"),
    [
        (0.5, "0.50"),
        (73.14, "73.1"),
        (999.0, "999"),
        (999_700.0, "1.00 M"),
        (1_000.0, "1.00 k"),
        (401_234.0, "401 k"),
        (8_020_000.0, "8.02 M"),
        (3.1e9, "3.10 G"),
        (5e12, "5000 G"),
    ],
)
def test_speeds_have_three_digits_and_a_letter(per_second: float, shown: str) -> None:
    assert speed(per_second) == shown


def test_an_interval_stands_in_brackets_and_a_missing_one_is_said() -> None:
    assert speed_interval((7.5e6, 8.5e6)) == "[7.50 M, 8.50 M]"
    assert speed_interval(None) == "no interval"
    assert ratio_interval(1.01, (1.0, 1.02)) == "1.010 [1.000, 1.020]"
    assert ratio_interval(1.01, None) == "1.010"


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [(0.00333, "0.00333"), (0.5, "0.500"), (1.0, "1.000"), (370.4, "370"), (1090.0, "1,090")],
)
def test_ratios_are_never_written_with_an_exponent_of_ten_above_one(ratio: float, shown: str) -> None:
    assert digits(ratio) == shown


def test_shares_have_one_digit_after_the_point() -> None:
    assert percent(0.8049) == "80.5%"


def test_one_is_not_many() -> None:
    assert [count(number, "agent") for number in (0, 1, 2_000)] == ["0 agents", "1 agent", "2,000 agents"]


@pytest.mark.parametrize(
    ("value", "shown"), [(1000.0, "1,000"), (0.4375, "0.438"), (0.0, "0"), (-0.0001, "0"), (12.5, "12.5")]
)
def test_plain_numbers_have_no_idle_zeros(value: float, shown: str) -> None:
    assert plain(value) == shown


@pytest.mark.parametrize(
    ("values", "line"), [([], ""), ([3.0], "▁"), ([1.0, 1.0], "▁▁"), ([0.0, 3.5, 7.0], "▁▅█"), ([5, 4], "█▁")]
)
def test_a_sparkline_goes_from_the_lowest_to_the_highest(values: list[float], line: str) -> None:
    assert sparkline(values) == line


def test_a_sparkline_shows_the_last_values() -> None:
    assert sparkline([9.0, *range(8)], width=8) == "▁▂▃▄▅▆▇█"


@pytest.mark.parametrize(
    ("ns", "said"), [(0, "0 ns"), (999, "999 ns"), (1_500, "1.50 µs"), (2e6, "2.00 ms"), (3.25e9, "3.25 s")]
)
def test_durations_are_as_people_read_them(ns: float, said: str) -> None:
    assert took(ns) == said
