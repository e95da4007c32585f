from dataclasses import replace

from support.drawn import lines
from support.records import BENCH, PROFILE, bench_with

from hotloop.core.record import Record
from hotloop.report.sections.notices import left_out
from hotloop.report.sections.overview import overview

STEADY = [4.0e6] * 8


def named(label: str, values: list[float], **changes: object) -> Record:
    return replace(bench_with(values), label=label, **changes)  # type: ignore[arg-type]


def test_each_record_stands_against_the_first_with_an_interval() -> None:
    drawn = lines(overview([named("one", STEADY), named("two", [6.0e6] * 8)]))
    assert "one 8.00 M [8.00 M, 8.00 M] first 0123abcd" in drawn
    assert "two 12.0 M [12.0 M, 12.0 M] 1.500 [1.500, 1.500] faster 0123abcd" in drawn


def test_the_share_of_observations_is_of_the_step_and_only_where_phases_are_known() -> None:
    drawn = lines(overview([named("one", STEADY, phases=PROFILE.phases), named("two", STEADY)]))
    assert "one 8.00 M [8.00 M, 8.00 M] first 80.0% 0123abcd" in drawn
    assert "two 8.00 M [8.00 M, 8.00 M] 1.000 [1.000, 1.000] same 0123abcd" in drawn


def test_what_cannot_be_compared_stays_in_the_table_with_its_reason_below() -> None:
    target = replace(BENCH.target, name="grid/arena", workload_hash="ba9876543210")
    drawn = lines(
        overview([named("one", STEADY), named("two", STEADY, target=target), named("three", STEADY[:3])])
    )
    assert "two 8.00 M [8.00 M, 8.00 M] not compared 0123abcd" in drawn
    assert "target grid/toy against grid/arena" in " ".join(drawn)
    assert any(line.startswith("two: ") for line in drawn)
    assert "three 8.00 M no interval no interval cannot tell 0123abcd" in drawn
    assert any(line.startswith("three: 3 rounds are too few") for line in drawn)


def test_a_record_without_rounds_or_a_clean_commit_says_so() -> None:
    cut = named("cut", [], partial=True, code=BENCH.code | {"dirty": True})
    assert "cut no rounds not compared 0123abcd (dirty)" in lines(overview([named("one", STEADY), cut]))


def test_a_record_without_a_label_goes_by_its_run() -> None:
    assert any(BENCH.run_id in line for line in lines(overview([BENCH])))


def test_a_file_that_is_no_record_is_a_notice() -> None:
    (line,) = lines(left_out(["a.json: cut off"]))
    assert line.startswith("! left out a.json: cut off; keep only")
