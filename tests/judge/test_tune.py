import random
from dataclasses import replace

import pytest
from support.shelves import tuned

from hotloop.core.record.experiments import Tried
from hotloop.judge.judge import judge
from hotloop.judge.sweep import floor, learning_check, mark_best, summarize_candidate, survivors, winner


def made(n: str, speeds: list[float], *, rungs: int = 1, rss: float = 1.0, latency: float = 1.0) -> Tried:
    return summarize_candidate({"n": n}, speeds, rungs=rungs, rss_bytes=rss, latency_ns=latency)


def test_the_faster_half_goes_on_and_one_at_least() -> None:
    assert survivors({"a": [1.0], "b": [3.0], "c": [2.0]}) == ["b", "c"]
    assert survivors({"a": [1.0]}) == ["a"]


def test_the_highest_lower_end_wins_and_not_the_highest_median() -> None:
    steady = made("steady", [100.0, 101, 102, 103, 104, 105])
    lucky = made("lucky", [60.0, 70, 120, 130, 140, 150])
    assert winner([lucky, steady]).at == {"n": "steady"}


def test_who_did_not_come_as_far_cannot_win() -> None:
    early = made("early", [200.0] * 6, rungs=1)
    last = made("last", [100.0] * 6, rungs=2)
    assert winner([early, last]).at == {"n": "last"}


def test_those_that_nobody_beats_are_marked() -> None:
    fast = made("fast", [100.0], rss=10, latency=10)
    small = made("small", [50.0], rss=1, latency=10)
    beaten = made("beaten", [40.0], rss=5, latency=10)
    assert [each.best for each in mark_best([fast, small, beaten])] == [True, True, False]


def test_the_floor_is_below_the_median() -> None:
    chance = random.Random(1)
    values = [100 + chance.gauss(0, 5) for _ in range(24)]
    found = floor(values)
    assert found is not None
    assert min(values) <= found < sorted(values)[12]
    assert floor([1.0, 2.0]) is None


@pytest.mark.parametrize(
    ("present", "winner", "outcome"),
    [
        ([5.0] * 6, [1.0, 1.1, 0.9, 1.0, 1.2, 0.8], "worse"),
        ([5.0] * 6, [6.0, 6.1, 5.9, 6.0, 6.2, 5.8], "better"),
        ([1.0] * 6, [0.997, 0.99, 1.0, 0.996, 0.999, 0.994], "as well"),  # surely less, by a trifle
        ([-5.0] * 6, [-5.1, -4.9, -5.0, -5.1, -5.0, -4.95], "as well"),
        ([1.0, 2, 3, 4, 5, 6], [1.2, 0.9, 3.1, 5.8, 5.3, 3.9], "cannot tell"),
    ],
)
def test_learning_is_told_by_the_whole_interval_and_a_band(
    present: list[float], winner: list[float], outcome: str
) -> None:
    assert learning_check(100, present, winner).outcome == outcome


def test_what_may_be_lost_is_a_part_of_what_was_learnt_and_not_of_what_a_return_is_counted_from() -> None:
    lower = [9.97, 9.96, 9.98, 9.97, 9.96, 9.98]
    assert learning_check(100, [10.0] * 6, lower, [0.0] * 6).outcome == "as well"
    assert learning_check(100, [10.0] * 6, lower, [9.9] * 6).outcome == "worse"
    shifted = learning_check(100, [0.0] * 6, [each - 10 for each in lower], [-10.0] * 6)
    assert shifted.outcome == "as well"
    assert shifted.margin == 0.5
    assert learning_check(100, [10.0] * 6, lower, [0.0] * 6, band=0.001).outcome == "worse"


def test_where_nothing_was_learnt_nobody_learns_as_well() -> None:
    noisy = [10.5, 9.4, 10.2, 9.8, 10.3, 9.7]
    found = learning_check(100, [10.0] * 6, noisy, [10.1] * 6)
    assert (found.margin, found.outcome) == (0.0, "cannot tell")


def test_the_difference_is_of_seeds_that_both_share() -> None:
    same = learning_check(100, [1.0, 2, 3, 4, 5, 6], [1.2, 1.9, 3.1, 3.8, 5.3, 5.9])
    assert same.low <= 0 <= same.high
    assert same.difference == pytest.approx(0.2 / 6)


@pytest.mark.parametrize(("winner", "code"), [((5.0, 5.0), 0), ((1.0, 1.0), 3), ((1.0, 9.0), 4)])
def test_what_is_learnt_decides_what_the_shell_is_told(winner: tuple[float, float], code: int) -> None:
    record = tuned()
    assert record.tuning is not None
    found = replace(record.tuning, learnt=learning_check(100, (5.0, 5.0), winner))
    assert judge(replace(record, tuning=found)).exit_code == code
