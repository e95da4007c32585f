from dataclasses import replace

from support.records import BENCH, PROFILE, bench_with

from hotloop.core.record import Record
from hotloop.core.record.comparison import Validation
from hotloop.judge.baselines import histories


def at(commit: int, speed: float, **more: object) -> Record:
    code = {**BENCH.code, "commit": f"{commit:08x}"}
    created = f"2026-01-{1 + commit // 24:02d}T{commit % 24:02d}:00:00+00:00"
    return replace(
        bench_with([speed] * 8), code=code, created=created, run_id=f"run-{commit}-{speed}", **more
    )


def test_a_point_is_a_commit_whoever_measured_it_again() -> None:
    (series,) = histories([at(2, 3e6), at(1, 1e6), at(1, 2e6)])
    assert [(point.commit, point.median) for point in series.points] == [
        ("00000001", 1.5e6),
        ("00000002", 3e6),
    ]
    assert series.points[0].run_ids == ("run-1-1000000.0", "run-1-2000000.0")


def test_machines_workloads_kinds_and_keys_are_never_joined() -> None:
    other = replace(at(1, 1e6), machine={**BENCH.machine, "fingerprint": "other"})
    keyed = replace(at(1, 1e6), target=replace(BENCH.target, keys={"agents": 9}))
    harder = replace(at(1, 1e6), target=replace(BENCH.target, workload_hash="other"))
    assert len(histories([at(1, 1e6), other, keyed, harder, PROFILE])) == 5


def test_partial_records_and_comparisons_are_no_history() -> None:
    assert histories([replace(at(1, 1e6), partial=True), replace(at(2, 1e6), kind="compare")]) == []


def test_a_bench_that_compared_every_step_is_no_history() -> None:
    assert histories([replace(at(1, 1e6), validation=Validation(comparisons=9, mismatches=0))]) == []


def test_a_change_of_level_is_at_its_commit() -> None:
    (series,) = histories([at(k, (1.0 if k < 10 else 0.9) * (1e6 + k % 3)) for k in range(20)])
    (change,) = series.changes
    assert series.points[change.index].commit == f"{10:08x}"


def test_what_was_accepted_begins_the_next_baseline() -> None:
    records = [at(k, (1.0 if k < 10 else 0.9) * (1e6 + k % 3)) for k in range(24)]
    (series,) = histories(records, {records[10].run_id: "two more channels"})
    assert (series.start, series.changes) == (10, ())
    assert series.accepted == {10: "two more channels"}
    assert series.missing == 0


def test_too_little_history_says_how_much_is_missing() -> None:
    (series,) = histories([at(k, 1e6) for k in range(5)])
    assert series.missing == 7
