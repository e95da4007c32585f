from dataclasses import replace

import pytest
from support.records import TIMES, TIMING

from hotloop.core.record.profile import PYTHON, STEP, WALL, Spread
from hotloop.lab.profile.tree import Timing


def totals(timing: Timing) -> dict[str, int]:
    return {row.path: row.total_ns for row in timing.rows()}


def test_python_and_step_add_up_to_the_wall() -> None:
    rows = totals(TIMING)
    assert rows[PYTHON] + rows[STEP] == rows[WALL] == 2_500


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_phases_and_unaccounted_add_up_to_the_step_on_any_number_of_threads(threads: int) -> None:
    timing = replace(TIMING, threads=threads)
    phases = [ns for path, ns in totals(timing).items() if path.startswith(f"{STEP}/")]
    assert len(phases) == len(TIMES) - 1
    assert sum(phases) + timing.unaccounted_ns == TIMES["step"]


def test_a_phase_of_several_threads_is_its_mean_over_them() -> None:
    assert totals(replace(TIMING, threads=2))[f"{STEP}/observations"] == 800


def test_means_are_of_one_env_step_and_shares_of_the_wall() -> None:
    row = next(row for row in TIMING.rows() if row.path == f"{STEP}/observations")
    assert (row.calls, row.mean_ns, row.share) == (10, 160.0, 0.64)


def test_percentiles_are_of_one_env_step() -> None:
    spread = Spread(path=STEP, calls=1_000, p50_ns=500.0, p95_ns=950.0, p99_ns=990.0, max_ns=1_000.0)
    row = next(row for row in replace(TIMING, spreads={STEP: spread}).rows() if row.path == STEP)
    assert (row.p50_ns, row.p95_ns, row.p99_ns, row.max_ns) == (100.0, 190.0, 198.0, 200.0)


def test_a_phase_without_a_spread_has_no_percentiles() -> None:
    row = next(row for row in TIMING.rows() if row.path == STEP)
    assert (row.p50_ns, row.p95_ns, row.p99_ns, row.max_ns) == (None, None, None, None)
