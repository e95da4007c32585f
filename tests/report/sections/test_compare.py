from dataclasses import replace

from support.drawn import lines
from support.records import BENCH, MACHINE, bench_with

from hotloop.judge.compare import versus
from hotloop.report.sections.compare import comparisons


def test_a_ratio_is_never_without_its_interval_nor_an_outcome_without_its_reason() -> None:
    slow = bench_with([2.0e6] * 8)
    drawn = lines(comparisons([versus(replace(BENCH, label="before"), slow)]))
    assert drawn[0] == "baseline times as fast outcome why"
    assert drawn[-1].startswith(
        "before 0.500 [0.470, 0.532] slower at least 87.9% more time for the same steps"
    )


def test_what_is_unlike_stands_beside_the_outcome() -> None:
    other = replace(bench_with([8.0e6] * 8), machine=MACHINE | {"fingerprint": "ba9876543210"})
    drawn = lines(comparisons([versus(bench_with([4.0e6] * 8), other, unlike=True)]))
    said = " ".join(drawn)
    assert "faster, unlike" in said
    assert "unlike machine (fingerprint 0123456789ab against" in said


def test_without_an_interval_there_is_no_ratio() -> None:
    drawn = lines(comparisons([versus(BENCH, bench_with([4.0e6] * 3))]))
    assert f"{BENCH.run_id} no interval cannot tell 3 rounds are too few" in drawn[-1]


def test_what_is_far_from_one_keeps_its_digits() -> None:
    drawn = lines(comparisons([versus(bench_with([4.0e6] * 8), bench_with([1.0e4] * 8))]))
    assert "0.0025 [0.0025, 0.0025] slower at least 400 times the time for the same steps" in drawn[-1]
    drawn = lines(comparisons([versus(bench_with([1.0e4] * 8), bench_with([4.0e6] * 8))]))
    assert "400 [400, 400] faster at least 400 times the steps in the same time" in drawn[-1]
