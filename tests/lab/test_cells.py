from pathlib import Path
from typing import Any

import pytest
from support import swept
from support.swept import RAN

from hotloop.core import files
from hotloop.core.errors import InputError
from hotloop.core.settings import Target
from hotloop.lab.sweep import cells
from hotloop.lab.sweep.cells import Cell, CellCache, CellResult, LocalExecutor, shelf_of, sweep

EXPERIMENT = f"{swept.__name__}:made_up"


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "OURS", "support.")
    RAN.clear()


def cell(n: str, **asked: str) -> Cell:
    return Cell(target=Target("grid/toy", {"n": n}), experiment=EXPERIMENT, asked=asked)


def test_a_cell_survives_the_way_to_another_machine() -> None:
    there = Cell(target=Target("my.py:make", {"n": 3}, phases="my.py:phases"), experiment="x", asked={"k": 1})
    assert Cell.from_json(there.to_json()) == there
    assert Cell.from_json(there.to_json()).id == there.id


def test_cells_that_differ_in_anything_have_different_ids() -> None:
    assert len({cell("1").id, cell("2").id, cell("1", label="a").id}) == 3


@pytest.mark.parametrize("name", ["os:system", "support.swept", "hotloop.core.files:save"])
def test_an_experiment_is_a_function_of_the_lab(name: str) -> None:
    with pytest.raises(InputError, match="is no experiment"):
        Cell(target=Target("grid/toy"), experiment=name).run()


def test_records_are_told_and_kept_as_they_come(tmp_path: Path) -> None:
    shelf, seen = CellCache(tmp_path), list[tuple[str, int]]()

    def tell(each: CellResult) -> None:
        seen.append((each.cell.target.keys["n"], len(list(tmp_path.glob("*.json")))))

    sweep([cell("1"), cell("2")], LocalExecutor(), shelf, tell=tell)
    assert seen == [("1", 1), ("2", 2)]


def test_ctrl_c_leaves_what_is_done_and_resume_goes_on_there(tmp_path: Path) -> None:
    stopped = sweep([cell("1"), cell("stop"), cell("2")], LocalExecutor(), CellCache(tmp_path))
    assert stopped.interrupted
    assert [each.target.keys["n"] for each, _ in stopped.records] == ["1"]
    RAN.clear()
    resumed = sweep([cell("1"), cell("2")], LocalExecutor(), CellCache(tmp_path))
    assert RAN == ["grid/toy n=2"]
    assert [each.kept for each in resumed.done] == [True, False]
    assert not resumed.interrupted


def test_a_cell_that_was_broken_off_is_not_kept(tmp_path: Path) -> None:
    assert sweep([cell("half"), cell("1")], LocalExecutor(), CellCache(tmp_path)).interrupted
    assert not list(tmp_path.glob("*.json"))


def test_a_record_that_is_damaged_is_measured_again(tmp_path: Path) -> None:
    shelf = CellCache(tmp_path)
    sweep([cell("1")], LocalExecutor(), shelf)
    (kept,) = tmp_path.glob("*.json")
    kept.write_text(kept.read_text()[:100])
    assert shelf.find(cell("1")) is None
    assert sweep([cell("1")], LocalExecutor(), shelf).done[0].kept is False
    assert shelf.find(cell("1")) is not None


def test_a_disk_that_takes_no_record_does_not_end_a_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write_new", full)
    shelf = CellCache(tmp_path)
    assert len(sweep([cell("1"), cell("2")], LocalExecutor(), shelf).records) == 2
    assert shelf.fault is not None
    assert "No space left on device" in shelf.fault


def test_a_refused_cell_is_told_and_the_others_run() -> None:
    found = sweep([cell("refused"), cell("1")], LocalExecutor())
    assert [each.refused for each in found.refused] == ["n=refused does not fit"]
    assert len(found.records) == 1


def test_what_another_machine_measured_is_measured_again(tmp_path: Path) -> None:
    sweep([cell("1")], LocalExecutor(), CellCache(tmp_path))
    shelf = CellCache(tmp_path, {"another"})
    RAN.clear()
    sweep([cell("1")], LocalExecutor(), shelf)
    assert RAN == ["grid/toy n=1"]


def test_a_sweep_is_resumed_where_the_last_one_of_the_same_cells_was(tmp_path: Path) -> None:
    some = [cell("1"), cell("2")]
    with pytest.raises(InputError, match="nothing to resume"):
        shelf_of(tmp_path, "scale", some, resume=True)
    for _ in range(2):
        sweep(some, LocalExecutor(), shelf_of(tmp_path, "scale", some, resume=False))
    assert len(list(tmp_path.iterdir())) == 2
    shelf = shelf_of(tmp_path, "scale", some[::-1], resume=True)
    assert shelf.folder.name.endswith("-2")


def test_progress_of_a_cell_is_a_part_of_that_of_all() -> None:
    moved: list[tuple[int, int]] = []
    sweep([cell("1"), cell("2")], LocalExecutor(), progress=lambda done, total: moved.append((done, total)))
    assert moved == [(500, 2_000), (1_500, 2_000)]


@pytest.mark.parametrize(
    ("target", "asked", "needed"),
    [
        ("grid/toy", {"against": None, "amount": 5}, False),
        ("grid/toy", {"against": "my_env.py:make"}, True),
        ("my_env.py:make", {}, True),
    ],
)
def test_a_cell_says_whether_it_needs_the_folder_it_was_asked_from(
    target: str, asked: dict[str, Any], *, needed: bool
) -> None:
    assert Cell(target=Target(target), experiment="x", asked=asked).names_code is needed
