import os
from pathlib import Path

import pytest
from support.records import BENCH

from hotloop.cli.results import make_room, record_path
from hotloop.core.errors import InputError, SetupError
from hotloop.core.files import save


def test_a_name_that_ends_in_json_is_a_file_and_any_other_a_folder() -> None:
    assert record_path(Path("a/b.json"), BENCH) == Path("a/b.json")
    assert record_path(Path("a/b"), BENCH) == Path(f"a/b/{BENCH.run_id}.json")


def test_room_is_made_for_a_file_and_for_a_folder(tmp_path: Path) -> None:
    make_room(tmp_path / "a" / "b.json")
    make_room(tmp_path / "c" / "d")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "c", "d"]


def test_a_file_where_a_folder_is_needed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file"):
        make_room(tmp_path / "file" / "x.json")


def test_a_folder_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(InputError, match="no permission"):
        make_room(tmp_path)


def test_files_that_share_a_stem_are_numbered_together(tmp_path: Path) -> None:
    (tmp_path / "page.json").write_text("another's")
    path = save(tmp_path / "page.md", "page", (".json", "record"))
    assert path == tmp_path / "page-2.md"
    assert (path.read_text(), path.with_suffix(".json").read_text()) == ("page", "record")
    assert (tmp_path / "page.json").read_text() == "another's"


def test_a_disk_that_fails_is_a_fault_of_the_setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, text: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hotloop.core.files.write_new", fail)
    with pytest.raises(SetupError, match="No space left"):
        save(tmp_path / "x.json", "")
