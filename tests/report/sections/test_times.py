from dataclasses import replace

import pytest
from support.drawn import text
from support.profiles import profile
from support.records import BENCH, PROFILE

from hotloop.core.record import Record
from hotloop.core.record.profile import Phase
from hotloop.core.settings import Target
from hotloop.report import markdown
from hotloop.report.kinds.profile import glance, page
from hotloop.report.kinds.times import breakdown, is_tree, loop_rows, shifts, step_lines, step_shares
from hotloop.report.section import Note, Tree


def test_lines_come_largest_first_and_small_phases_share_one() -> None:
    assert [line.name for line in step_lines(PROFILE)] == [
        *("observations", "actions", "autoreset", "reset", "1 phase under 1%"),
        *("unaccounted", "native step", "Python and binding", "wall"),
    ]


def test_the_lines_add_up() -> None:
    lines = step_lines(PROFILE)
    step, wall = (line for line in lines if line.is_sum)
    assert sum(line.ns for line in lines if line.in_step and not line.is_sum) == step.ns
    assert step.ns + sum(line.ns for line in lines if not line.in_step and not line.is_sum) == wall.ns


def drawn_values(record: Record) -> dict[str, tuple[str, ...]]:
    drawn = breakdown(record)
    assert isinstance(drawn, Tree)
    return {branch.name: branch.values for branch in drawn.branches}


def test_times_are_of_one_env_step_and_one_agent_step() -> None:
    assert drawn_values(PROFILE)["observations"] == ("0.160", "80.0", "80.0%", "64.0%")
    assert drawn_values(PROFILE)["wall"] == ("0.250", "125.0", "", "100.0%")


def test_unaccounted_is_a_line_even_where_it_is_nothing() -> None:
    assert drawn_values(replace(PROFILE, unaccounted_ns=0))["unaccounted"][0] == "0.000"


def test_a_record_without_phases_has_no_breakdown() -> None:
    assert step_lines(BENCH) == ()
    assert isinstance(breakdown(BENCH), Note)


def test_times_are_those_of_the_instrumented_passes_whatever_was_run_beside_them() -> None:
    """A bench with phases did the work of its clean rounds, too."""
    more = replace(PROFILE, work=replace(PROFILE.work, env_steps=1_000, agent_steps=2_000))
    assert breakdown(more) == breakdown(PROFILE)


def tree_record() -> Record:
    totals = {
        "wall": (10, 1_000_000),
        "wall/env.step": (10, 700_000),
        "wall/env.step/inner": (10, 600_000),
        "wall/policy": (10, 200_000),
        "wall/everything else": (10, 90_000),
    }
    phases = tuple(
        Phase(path=path, calls=calls, total_ns=ns, mean_ns=ns / calls, share=ns / 1e6)
        for path, (calls, ns) in totals.items()
    )
    return replace(PROFILE, phases=phases, unaccounted_ns=10_000)


def test_lines_are_the_tree_with_self_and_unaccounted_which_add_up() -> None:
    record = tree_record()
    rows = loop_rows(record).walk()
    lines = [(row.depth, row.name or "wall", round(row.total_ns / 1e6, 3)) for row in rows]
    assert lines == [
        (0, "wall", 1.0),
        (1, "env.step", 0.7),
        (2, "inner", 0.6),
        (2, "self", 0.1),
        (1, "policy", 0.2),
        (1, "everything else", 0.09),
        (1, "unaccounted", 0.01),
    ]
    assert sum(share for depth, _, share in lines if depth == 1) == pytest.approx(1.0)


def test_a_profile_of_phases_is_no_tree() -> None:
    assert is_tree(tree_record())
    assert not is_tree(PROFILE)


def test_it_is_drawn_on_the_terminal_and_as_a_page() -> None:
    assert "    inner" in text(glance(tree_record()))
    drawn = markdown.draw_page(page(tree_record()))
    assert "| &nbsp;&nbsp;&nbsp;&nbsp;policy | " in drawn
    assert "| 20.0% |" in drawn


def test_one_line_names_the_targets_and_the_phases_that_move() -> None:
    records = [
        profile(Target(target, {"num_envs": 4}), 200) for target in ("grid/arena", "grid/guard", "grid/toy")
    ]
    line = shifts(records)
    assert line.startswith("grid/arena → grid/guard → grid/toy: ")
    assert "\n" not in line
    assert line.count(" → ") == 2 + 4 * 2
    assert abs(sum(step_shares(records[0]).values()) - 1) < 0.05


def test_one_target_has_nothing_to_move_to() -> None:
    assert shifts([profile(Target("grid/toy", {"num_envs": 4}), 200)]) == ""


def test_phases_without_their_step_have_no_share_of_it() -> None:
    """A record may have been damaged, and still be read."""
    phases = tuple(phase for phase in PROFILE.phases if phase.path != "wall/step")
    assert step_shares(PROFILE)
    assert step_shares(replace(PROFILE, phases=phases)) == {}
