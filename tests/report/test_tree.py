from dataclasses import replace

import pytest
from support.records import PROFILE

from hotloop.core.record import Phase
from hotloop.report import markdown, terminal
from hotloop.report.tree import branches, is_tree


def tree_record():
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


def test_lines_are_the_tree_with_self_and_unaccounted_which_add_up():
    record = tree_record()
    lines = [(line.depth, line.name, round(line.of_wall, 3)) for line in branches(record)]
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


def test_a_profile_of_phases_is_no_tree():
    assert is_tree(tree_record())
    assert not is_tree(PROFILE)


def test_it_is_drawn_on_the_terminal_and_as_a_page():
    from rich.console import Console

    console = Console(width=120)
    with console.capture() as captured:
        console.print(terminal.draw_profile(tree_record()))
    assert "    inner" in captured.get()
    page = markdown.draw_profile(tree_record())
    assert "| &nbsp;&nbsp;&nbsp;&nbsp;policy | " in page
    assert "| 20.0% |" in page
