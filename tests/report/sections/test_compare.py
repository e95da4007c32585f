from dataclasses import replace

import pytest
from support.drawn import lines
from support.records import BENCH, MACHINE, bench_with

from hotloop.judge.compare import compare_stored
from hotloop.report.kinds.compare import comparisons, headline


def test_a_ratio_is_never_without_its_interval_nor_an_outcome_without_its_reason() -> None:
    slow = bench_with([2.0e6] * 8)
    drawn = lines(comparisons([compare_stored(replace(BENCH, label="before"), slow)]))
    assert drawn[0] == "baseline times as fast outcome why"
    assert drawn[-1].startswith(
        "before 0.500 [0.475, 0.527] slower at least 89.9% more time for the same steps"
    )


def test_what_is_unlike_stands_beside_the_outcome() -> None:
    other = replace(bench_with([8.0e6] * 8), machine=MACHINE | {"fingerprint": "ba9876543210"})
    drawn = lines(comparisons([compare_stored(bench_with([4.0e6] * 8), other, unlike=True)]))
    said = " ".join(drawn)
    assert "faster, of unlike things" in said
    assert "unlike machine (fingerprint 0123456789ab against" in said


def test_without_an_interval_there_is_no_ratio() -> None:
    drawn = lines(comparisons([compare_stored(BENCH, bench_with([4.0e6] * 3))]))
    assert f"{BENCH.run_id} no interval cannot tell 3 rounds are too few" in drawn[-1]


def test_what_is_far_from_one_keeps_its_digits() -> None:
    drawn = lines(comparisons([compare_stored(bench_with([4.0e6] * 8), bench_with([1.0e4] * 8))]))
    assert "0.0025 [0.0025, 0.0025] slower at least 400 times the time for the same steps" in drawn[-1]
    drawn = lines(comparisons([compare_stored(bench_with([1.0e4] * 8), bench_with([4.0e6] * 8))]))
    assert "400 [400, 400] faster at least 400 times the steps in the same time" in drawn[-1]


@pytest.mark.parametrize(
    ("outcome", "difference", "said"),
    [
        ("same", None, "B is the same: 1.000"),
        ("faster", None, "B is faster: 1.000"),
        ("cannot tell", None, "cannot tell: 1.000"),
        ("cannot tell", "step 3, rewards[0]", "B is not equal to A: 1.000"),
    ],
)
def test_the_verdict_is_a_sentence(outcome, difference, said) -> None:
    compared = replace(compare_stored(BENCH, BENCH), outcome=outcome, difference=difference)
    assert lines([headline(compared)])[0].startswith(said)
