from pathlib import Path

import pytest
from support.shelves import fill, history, measured

from hotloop.core.errors import InputError
from hotloop.core.files import LARGEST
from hotloop.core.record import accept
from hotloop.report.files import read_shelf


def test_records_come_oldest_first_and_the_rest_is_left_out_with_its_reason(tmp_path: Path) -> None:
    folder = fill(tmp_path, history(3)[::-1])
    (folder / "cut.json").write_text('{"schema"')
    (folder / "other.json").write_text("[]")
    (folder / "x.accepted.json").write_text('{"run_id": 1}')
    (folder / "settings.json").write_text("{}")
    (folder / "diagnosis-20260101-0101.json").write_text("{}")
    with (folder / "huge.json").open("wb") as file:
        file.truncate(LARGEST + 1)
    shelf = read_shelf([folder, folder])
    assert [record.run_id for record in shelf.records] == ["bench-0000", "bench-0001", "bench-0002"]
    assert sorted(Path(line.partition(": ")[0]).name for line in shelf.left_out) == [
        "cut.json", "huge.json", "other.json", "x.accepted.json",
    ]  # fmt: skip


def test_the_cells_of_a_sweep_are_in_its_record_and_come_by_themselves_only_where_asked_for(
    tmp_path: Path,
) -> None:
    fill(tmp_path / "artifacts" / "throughput", history(2))
    cells = fill(tmp_path / "artifacts" / "sweeps" / "scale-x", [measured(7, 1e6)])
    assert len(read_shelf([tmp_path]).entries) == 2
    assert [record.run_id for record in read_shelf([cells]).records] == ["bench-0007"]


def test_what_is_accepted_is_said_once_and_beside(tmp_path: Path) -> None:
    folder = fill(tmp_path, history(2))
    before = (folder / "bench-0001.json").read_bytes()
    accept(folder, "bench-0001", "more to do")
    assert read_shelf([folder]).accepted == {"bench-0001": "more to do"}
    assert (folder / "bench-0001.json").read_bytes() == before
    with pytest.raises(InputError, match="accepted already: remove"):
        accept(folder, "bench-0001", "again")
