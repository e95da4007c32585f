from dataclasses import replace

import pytest
from support.records import BENCH, PROFILE

from hotloop.report.breakdown import break_down


def test_lines_come_largest_first_and_small_phases_share_one() -> None:
    breakdown = break_down(PROFILE)
    assert breakdown is not None
    assert [line.name for line in breakdown.lines] == [
        *("observations", "actions", "autoreset", "reset", "1 phase under 1%"),
        *("unaccounted", "native step", "Python and binding", "wall"),
    ]


def test_the_lines_add_up() -> None:
    breakdown = break_down(PROFILE)
    assert breakdown is not None
    inside = [line.us_per_env_step for line in (*breakdown.phases, breakdown.unaccounted)]
    assert sum(inside) == pytest.approx(breakdown.step.us_per_env_step)
    both = breakdown.step.of_wall + breakdown.python.of_wall
    assert both == pytest.approx(breakdown.wall.of_wall) == 1.0


def test_times_are_of_one_env_step_and_one_agent_step() -> None:
    breakdown = break_down(PROFILE)
    assert breakdown is not None
    line = breakdown.phases[0]
    assert (line.us_per_env_step, line.ns_per_agent_step) == (0.16, 80.0)
    assert (line.of_step, line.of_wall) == (0.8, 0.64)


def test_unaccounted_is_a_line_even_where_it_is_nothing() -> None:
    breakdown = break_down(replace(PROFILE, unaccounted_ns=0))
    assert breakdown is not None
    assert breakdown.unaccounted.us_per_env_step == 0.0


def test_a_record_without_phases_has_no_breakdown() -> None:
    assert break_down(BENCH) is None


def test_times_are_those_of_the_instrumented_passes_whatever_was_run_beside_them() -> None:
    """A bench with phases did the work of its clean rounds, too."""
    more = replace(PROFILE, work=replace(PROFILE.work, env_steps=1_000, agent_steps=2_000))
    assert break_down(more) == break_down(PROFILE)
