import pstats
import sys
from pathlib import Path

import pytest
from support.scenes import scene, turn

from hotloop.core.record import stacks
from hotloop.probes.cprofile import Stats, look, probe, tree

A, B, C = ("f.py", 1, "a"), ("f.py", 2, "b"), ("f.py", 3, "c")


def told(own: float, total: float, **callers: float) -> tuple[int, int, float, float, dict[object, object]]:
    names = {"a": A, "b": B, "c": C}
    return 1, 1, own, total, {names[name]: (1, 1, 0.0, share) for name, share in callers.items()}


def names(stack: stacks.Stack) -> str:
    return " ".join(name for name, _, _ in stack)


def test_a_slow_function_is_the_first_row(tmp_path: Path) -> None:
    found = look(scene(tmp_path, turn))
    (table,) = found.tables
    first = dict(zip(table.columns, table.rows[0], strict=True))
    assert first["function"].startswith("slow (support/scenes.py:")
    assert first["calls"] == 50
    assert first["own_share"] > 0.4
    assert 0 < first["own_ns"] <= first["total_ns"] <= found.facts["wall_ns"]
    own = [row[2] for row in table.rows]
    assert own == sorted(own, reverse=True)


def test_the_files_are_those_that_it_names(tmp_path: Path) -> None:
    found = look(scene(tmp_path, turn))
    assert {path.name for path in tmp_path.iterdir()} == set(found.files)
    stats = pstats.Stats(str(tmp_path / "cprofile.pstats"))
    assert "slow" in stats.get_stats_profile().func_profiles
    chains = [names(stack) for stack in stacks.read(tmp_path / "cprofile.speedscope.json")]
    assert any("played turn slow" in chain for chain in chains)
    assert not any("disable" in chain for chain in chains)


def test_the_profiler_is_off_again_even_if_the_play_breaks(tmp_path: Path) -> None:
    def breaks() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError):
        look(scene(tmp_path, breaks))
    assert sys.getprofile() is None


def test_the_tree_gives_each_caller_its_share_and_adds_up() -> None:
    stats: Stats = {A: told(1.0, 10.0), B: told(2.0, 6.0, a=6.0), C: told(7.0, 7.0, b=4.0, a=3.0)}  # type: ignore[dict-item]
    seconds = {names(stack): own for stack, own in tree(stats)}
    assert seconds == pytest.approx({"a b c": 4.0, "a b": 2.0, "a c": 3.0, "a": 1.0})


def test_a_function_of_two_callers_is_split_below_as_it_is_above() -> None:
    stats: Stats = {A: told(0.0, 2.0), B: told(0.0, 4.0), C: told(0.0, 6.0, a=2.0, b=4.0)}  # type: ignore[dict-item]
    stats[("f.py", 4, "d")] = (1, 1, 6.0, 6.0, {C: (1, 1, 6.0, 6.0)})
    assert {names(stack): own for stack, own in tree(stats)} == pytest.approx({"a c d": 2.0, "b c d": 4.0})


def test_a_function_that_calls_itself_is_followed_once() -> None:
    stats: Stats = {A: told(1.0, 4.0), B: told(3.0, 3.0, a=3.0, b=2.0)}  # type: ignore[dict-item]
    seconds = {names(stack): own for stack, own in tree(stats)}
    assert seconds == pytest.approx({"a b": 3.0, "a": 1.0})


def test_what_is_too_small_to_be_seen_is_counted_with_its_caller() -> None:
    stats: Stats = {A: told(9.9999, 10.0), B: told(0.0001, 0.0001, a=0.0001)}  # type: ignore[dict-item]
    assert {names(stack): own for stack, own in tree(stats)} == pytest.approx({"a": 10.0})


def test_it_needs_nothing() -> None:
    assert probe.why_not() is None
