from pathlib import Path

import pytest
from support.memories import looked_apart
from support.scenes import hold_and_tangle, leak

from hotloop.probes.memory import LONGER, PAIRS, PARTS, differences, grown, whole

pytest.importorskip("memray")


FEW = 20
"""Calls of a shorter window here."""


@pytest.mark.slow
def test_a_leak_of_a_kilobyte_a_step_is_found_with_its_site_and_slope(tmp_path: Path) -> None:
    found = looked_apart(tmp_path, leak, PARTS * FEW, collecting=True)
    growth, counts, peak = found.tables
    where, slope, low, high = growth.rows[0]
    assert where == f"leak (support/scenes.py:{leak.__code__.co_firstlineno + 2})"
    assert low <= slope <= high
    assert 1000 < slope < 1200  # the list itself grows now and then, in the shorter window or in the longer
    assert 800 < found.facts["growth_bytes_per_env_step"] < 1400
    assert peak.rows[0][0] == where
    assert found.facts["play_peak_bytes"] >= 1024 * LONGER * FEW
    assert any(row[0] == where and row[1] >= 1 for row in counts.rows)
    assert found.facts["env_steps"] == FEW * (1 + PAIRS * (1 + LONGER))
    assert [path.name for path in tmp_path.iterdir()] == ["memory.bin"]


@pytest.mark.slow
def test_what_is_held_or_can_be_collected_does_not_grow(tmp_path: Path) -> None:
    # The collector is off, as it is while something is measured.
    found = looked_apart(tmp_path, hold_and_tangle, PARTS * FEW, collecting=False)
    assert not [row for row in found.tables[0].rows if "scenes.py" in row[0]]
    assert found.facts["growth_bytes_low"] <= 0 or found.facts["growth_bytes_per_env_step"] < 100
    assert found.facts["allocations_per_env_step"] >= 1


def test_growth_is_what_the_further_steps_left_and_what_is_held_cancels() -> None:
    short, long = {"a": 100 + 10 * 8, "b": 50}, {"a": 100 + 30 * 8, "b": 50}
    assert differences([short], [long], "a", 20) == [8.0]
    assert grown([short] * PAIRS, [long] * PAIRS, 20) == (("a", 8.0, 8.0, 8.0),)
    assert whole([short] * PAIRS, [long] * PAIRS, 20) == (8.0, 8.0, 8.0)


def test_a_site_that_did_not_grow_every_time_is_not_called_growing() -> None:
    shorter = [{"a": 10}] * PAIRS
    longer = [{"a": 30}] * (PAIRS - 1) + [{"a": 10}]
    assert grown(shorter, longer, 10) == ()


def test_the_fastest_growth_comes_first() -> None:
    longer = [{"a": 20, "b": 900, "c": 30}] * PAIRS
    assert [row[0] for row in grown([{}] * PAIRS, longer, 10)] == ["b", "c", "a"]


def test_only_the_three_functions_that_grow_most_are_listed_with_all_their_lines() -> None:
    longer = {
        "f (a.py:1)": 40.0,
        "f (a.py:2)": 41.0,
        "g (a.py:9)": 50.0,
        "h (a.py:3)": 60.0,
        "i (a.py:4)": 45.0,
    }
    rows = grown([{}] * PAIRS, [longer] * PAIRS, 10)
    assert [row[0] for row in rows] == ["h (a.py:3)", "g (a.py:9)", "f (a.py:2)", "f (a.py:1)"]
