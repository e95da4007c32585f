import gc
import sys
from pathlib import Path

import pytest
from support.scenes import quick, scene, slow, turn

from hotloop.core.registry import ProbeError
from hotloop.probes import samples
from hotloop.probes.line import MOST_FUNCTIONS, look

pytest.importorskip("line_profiler")


def test_a_slow_line_has_the_largest_share(tmp_path: Path) -> None:
    found = look(scene(tmp_path, turn, functions=(("scenes.turn", turn),)))
    (table,) = found.tables
    assert table.title == "Lines of scenes.turn"
    rows = {row[-1].strip(): dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert (rows["slow()"]["hits"], rows["quick()"]["hits"]) == (50, 50)
    assert rows["slow()"]["share"] > 0.7
    assert rows["def turn() -> None:"]["hits"] is None
    first = turn.__code__.co_firstlineno
    assert [row[0] for row in table.rows] == [first, first + 1, first + 2]
    assert sum(row[3] or 0 for row in table.rows) == pytest.approx(1.0)
    assert found.facts["ran"] == ["scenes.turn"]


def test_lines_of_several_functions_are_kept_apart(tmp_path: Path) -> None:
    found = look(scene(tmp_path, turn, functions=(("slow", slow), ("quick", quick))))
    slow_lines, quick_lines = found.tables
    assert slow_lines.rows[3][1] == 50 * 400
    assert quick_lines.rows[-1][1] == 50


def test_functions_that_never_run_are_an_obstacle(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match="no line of slow ran"):
        look(scene(tmp_path, quick, functions=(("slow", slow),)))


def test_of_two_functions_one_may_never_run(tmp_path: Path) -> None:
    found = look(scene(tmp_path, quick, functions=(("slow", slow), ("quick", quick))))
    assert found.facts["ran"] == ["quick"]
    assert found.tables[0].rows == ()


def test_nothing_is_traced_afterwards(tmp_path: Path) -> None:
    before = sys.gettrace()
    look(scene(tmp_path, turn, functions=(("turn", turn),)))
    assert sys.gettrace() is before


@pytest.mark.parametrize("frozen", [True, False])
def test_where_no_function_is_named_the_hottest_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frozen: bool
) -> None:
    (gc.freeze if frozen else gc.unfreeze)()
    monkeypatch.setattr(samples, "SHORTEST_NS", 50_000_000)
    found = look(scene(tmp_path, turn, calls=500, marker="played"))
    assert found.facts["ran"][0] == "slow"
    assert len(found.tables) <= MOST_FUNCTIONS
    assert any("total += number * 0.5" in row[-1] for row in found.tables[0].rows)
