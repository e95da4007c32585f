from dataclasses import replace

from support.drawn import lines
from support.records import BENCH, PROFILE, bench_with

from hotloop.core.record import Record
from hotloop.core.record.comparison import Validation
from hotloop.judge.compare import compare_records
from hotloop.report.kinds.record import overview
from hotloop.report.section import left_out

STEADY = [4.0e6] * 8


def named(label: str, values: list[float], **changes: object) -> Record:
    return replace(bench_with(values), label=label, **changes)  # type: ignore[arg-type]


def test_each_record_stands_against_the_first_of_its_target_with_an_interval() -> None:
    drawn = lines(overview([named("one", STEADY), named("two", [6.0e6] * 8)]))
    assert "one grid/toy 4.00 M env-steps/s [4.00 M, 4.00 M] first" in drawn
    assert "two grid/toy 6.00 M env-steps/s [6.00 M, 6.00 M] 1.500 [1.500, 1.500] faster" in drawn


def test_the_share_of_observations_is_of_the_step_and_only_where_phases_are_known() -> None:
    drawn = lines(overview([named("one", STEADY, phases=PROFILE.phases), named("two", STEADY)]))
    assert "one grid/toy 4.00 M env-steps/s [4.00 M, 4.00 M] first 80.0%" in drawn
    assert "two grid/toy 4.00 M env-steps/s [4.00 M, 4.00 M] 1.000 [1.000, 1.000] same" in drawn


def test_another_target_has_a_first_of_its_own_and_says_its_keys() -> None:
    target = replace(BENCH.target, name="grid/arena", workload_hash="ba9876543210", keys={"num_envs": 64})
    drawn = lines(overview([named("one", STEADY), named("two", STEADY, target=target)]))
    assert "two grid/arena num_envs=64 4.00 M env-steps/s [4.00 M, 4.00 M] first" in drawn


def test_what_cannot_be_compared_stays_in_the_table_with_its_reason_below() -> None:
    target = replace(BENCH.target, workload_hash="ba9876543210", params={"agents": 9})
    drawn = lines(
        overview([named("one", STEADY), named("two", STEADY, target=target), named("three", STEADY[:3])])
    )
    assert "two grid/toy 4.00 M env-steps/s [4.00 M, 4.00 M] not compared" in drawn
    assert any(line.startswith("two, grid/toy: ") for line in drawn)
    assert "three grid/toy 4.00 M env-steps/s no interval no interval cannot tell" in drawn
    assert any(line.startswith("three, grid/toy: 3 rounds are too few") for line in drawn)


def test_a_record_without_rounds_or_a_clean_commit_says_so() -> None:
    assert "all at commit 0123abcd" in lines(overview([named("one", STEADY), named("two", STEADY)]))
    cut = named("cut", [], partial=True, code=BENCH.code | {"dirty": True})
    assert "cut grid/toy no rounds not compared 0123abcd (dirty)" in lines(
        overview([named("one", STEADY), cut])
    )


def test_a_comparison_has_its_own_outcome_and_the_speed_of_its_later_side() -> None:
    compared = compare_records(named("a", STEADY), named("b", [6.0e6] * 8), band=0.02, unlike=False)
    (found,) = (line for line in lines(overview([replace(compared, label="x")])) if line.startswith("x "))
    assert found.startswith("x grid/toy 6.00 M env-steps/s of B 1.500 [1.500, 1.500] ")
    assert "no rounds" not in found


def test_a_mismatch_is_called_that_and_not_an_interruption() -> None:
    compared = compare_records(named("a", STEADY), named("b", STEADY), band=0.02, unlike=False)
    differs = replace(compared.comparisons[0], difference="step 3, env 0: rewards", outcome="cannot tell")
    broken = replace(
        compared,
        label="x",
        comparisons=(differs,),
        validation=Validation(comparisons=5, mismatches=1),
        metrics={},
        work=replace(compared.work, env_steps=0),
    )
    drawn = lines(overview([named("one", STEADY), broken]))
    assert "x grid/toy not timed not equal" in drawn
    assert "x, grid/toy: step 3, env 0: rewards" in drawn
    assert not any("interrupted" in line for line in drawn)


def test_a_record_without_a_label_goes_by_its_time() -> None:
    assert any("01-02 03:04 grid/toy" in line for line in lines(overview([BENCH])))


def test_a_file_that_is_no_record_is_a_notice() -> None:
    (line,) = lines(left_out(["a.json: cut off"]))
    assert line.startswith("! left out a.json: cut off; keep only")
