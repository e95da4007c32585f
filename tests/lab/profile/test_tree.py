import pytest
from support.records import TIMES, TIMING

from hotloop.core.record.profile import PYTHON, STEP, WALL, Spread, describe_times
from hotloop.core.time_tree import TimeTree
from hotloop.lab.profile.calls import of_env_step, step_times


def totals(tree: TimeTree) -> dict[str, int]:
    return {row.path: row.total_ns for row in describe_times(tree)}


def on_threads(threads: int) -> TimeTree:
    return step_times(TIMES, wall_ns=2_500, env_steps=10, threads=threads)


def test_python_and_step_add_up_to_the_wall() -> None:
    rows = totals(TIMING)
    assert rows[PYTHON] + rows[STEP] == rows[WALL] == 2_500
    assert TIMING.self_ns == 0


def test_what_is_beside_the_engine_is_a_row_of_its_own_and_no_pythons() -> None:
    rows = totals(step_times(TIMES | {"log": 200}, wall_ns=2_500, env_steps=10, threads=2, beside=["log"]))
    assert rows[f"{WALL}/log"] == 200
    assert rows[PYTHON] + rows[STEP] + rows[f"{WALL}/log"] == rows[WALL]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_phases_and_unaccounted_add_up_to_the_step_on_any_number_of_threads(threads: int) -> None:
    tree = on_threads(threads)
    phases = [ns for path, ns in totals(tree).items() if path.startswith(f"{STEP}/")]
    assert len(phases) == len(TIMES) - 1
    assert sum(phases) + tree["step"].self_ns == TIMES["step"]


def test_a_phase_of_several_threads_is_its_mean_over_them() -> None:
    assert totals(on_threads(2))[f"{STEP}/observations"] == 800


def test_means_are_of_one_env_step_and_shares_of_the_wall() -> None:
    row = next(row for row in describe_times(TIMING) if row.path == f"{STEP}/observations")
    assert (row.calls, row.mean_ns, row.share) == (10, 160.0, 0.64)


def test_percentiles_are_of_one_env_step() -> None:
    spread = Spread(path=STEP, calls=1_000, p50_ns=500.0, p95_ns=950.0, p99_ns=990.0, max_ns=1_000.0)
    phases = describe_times(TIMING, spreads={STEP: of_env_step(spread, 5)})
    row = next(row for row in phases if row.path == STEP)
    assert row.points == (100.0, 190.0, 198.0, 200.0)


def test_a_phase_without_a_spread_has_no_percentiles() -> None:
    row = next(row for row in describe_times(TIMING) if row.path == STEP)
    assert row.points == (None, None, None, None)


def test_the_time_of_each_round_adds_up_to_the_row() -> None:
    half = step_times({name: ns // 2 for name, ns in TIMES.items()}, wall_ns=1_250, env_steps=5, threads=1)
    for row in describe_times(TIMING, [half, TIMING - half]):
        assert sum(row.rounds_ns) == row.total_ns
