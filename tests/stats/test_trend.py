import random
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.stats.summary import EXACT_UP_TO, drift, inversion_chances, kendall_p, warmup_suspect


def quiet(count: int, seed: int) -> list[float]:
    dice = random.Random(seed)
    return [dice.gauss(100, 2) for _ in range(count)]


@pytest.mark.parametrize("count", range(2, 8))
def test_the_chance_of_an_order_is_that_of_counting_all_orders(count):
    scores = [score(order) for order in permutations(range(count))]
    for wanted in range(max(scores) + 1):
        counted = sum(abs(seen) >= wanted for seen in scores) / len(scores)
        if wanted in scores:
            assert kendall_p(count, wanted) == pytest.approx(counted)


def score(order: tuple[int, ...]) -> int:
    return sum((b > a) - (b < a) for i, a in enumerate(order) for b in order[i + 1 :])


def test_the_chances_add_up_to_one():
    assert sum(inversion_chances(EXACT_UP_TO)) == pytest.approx(1)


@pytest.mark.parametrize("score", [100, 400, 800, 1200])
def test_exact_and_approximate_chances_meet(score, monkeypatch):
    exact = kendall_p(EXACT_UP_TO, score)
    monkeypatch.setattr("hotloop.stats.summary.EXACT_UP_TO", EXACT_UP_TO - 1)
    assert kendall_p(EXACT_UP_TO, score) == pytest.approx(exact, abs=0.001)


def test_quiet_rounds_are_suspected_in_about_one_run_of_a_hundred():
    alarms = sum(drift(quiet(20, seed)).suspect for seed in range(1000))
    assert 2 <= alarms <= 20


@pytest.mark.parametrize("direction", [1, -1])
def test_a_steady_change_is_found_and_measured(direction):
    values = [value * (1 + direction * 0.1 * i / 19) for i, value in enumerate(quiet(20, 1))]
    seen = drift(values)
    assert seen.suspect
    assert seen.change == pytest.approx(direction * 0.1, abs=0.04)


def test_one_wild_round_is_no_drift():
    assert not drift([*quiet(19, 3), 1e9]).suspect


@pytest.mark.parametrize("values", [[], [5.0], [0.0, 0.0], [5.0] * 30])
def test_nothing_changing_is_no_drift(values):
    seen = drift(values)
    assert (seen.change, seen.p) == (0.0, pytest.approx(1))


@given(st.lists(st.floats(1, 1e6), max_size=30))
def test_a_chance_is_a_chance(values):
    assert 0 <= drift(values).p <= 1


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=30))
def test_going_backwards_is_as_suspect(values):
    assert drift(values[::-1]).p == drift(values).p


def test_quiet_rounds_are_not_taken_for_a_cold_start():
    assert sum(warmup_suspect(quiet(20, seed)) for seed in range(1000)) <= 10


@pytest.mark.parametrize("first", [150, 50])
def test_one_cold_round_is_suspected(first):
    assert warmup_suspect([first, *quiet(19, 5)])


def test_three_slightly_cold_rounds_are_suspected():
    assert warmup_suspect([108, 107, 106, *quiet(17, 6)])


def test_a_start_that_is_off_by_a_thousandth_is_no_cold_one():
    steady = [100 + 0.001 * (k % 5) for k in range(17)]
    assert not warmup_suspect([100.1, 100.1, 100.1, *steady])
    assert warmup_suspect([103.0, 103.0, 103.0, *steady])


def test_a_cold_round_in_the_middle_is_no_cold_start():
    values = quiet(20, 8)
    values[9] = 500
    assert not warmup_suspect(values)


@pytest.mark.parametrize("count", range(12))
def test_below_twelve_rounds_nothing_can_be_said(count):
    assert not warmup_suspect([1e9, *[1.0] * count][:count])
