import os
from dataclasses import replace
from pathlib import Path

import pytest
from support.records import BENCH

from hotloop.cli.results import (
    make_room,
    measure,
    names_several,
    names_world,
    print_records,
    record_path,
    targets_of,
)
from hotloop.core.errors import ExitCode, InputError, SetupError
from hotloop.core.files import save
from hotloop.core.progress import Progress
from hotloop.core.record import Record
from hotloop.core.registry import find, presets
from hotloop.core.settings import Target
from hotloop.report.section import Note


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


def made(target: Target, progress: Progress) -> Record:
    progress(1, 1)
    return replace(BENCH, target=replace(BENCH.target, name=target.name), partial=target.name == "stop")


def test_each_record_is_kept_as_soon_as_it_is_there() -> None:
    kept: list[str] = []

    def keep(record: Record) -> Path:
        kept.append(record.target.name)
        return Path(record.target.name)

    records = measure([Target("a"), Target("b")], made, keep)
    assert kept == [record.target.name for record in records] == ["a", "b"]


def test_an_interrupted_run_is_kept_and_is_the_last() -> None:
    records = measure([Target(name) for name in ("a", "stop", "b")], made, lambda record: Path("x"))
    assert [record.target.name for record in records] == ["a", "stop"]


def test_the_gravest_exit_code_wins(capsys: pytest.CaptureFixture[str]) -> None:
    records = [replace(BENCH, exit_code=code) for code in (0, 1, 130)]
    assert print_records(records, [Note(words="view")], as_json=False, as_list=True) == ExitCode.INTERRUPTED
    assert capsys.readouterr().out == "view\n"


def test_a_preset_stands_for_itself_and_a_world_for_all_its_presets() -> None:
    assert targets_of(Target("grid/toy", {"agents": "3"})) == [Target("grid/toy", {"agents": "3"})]
    assert targets_of(Target("grid")) == [Target(found.target) for found in presets(find("grid").world)]
    assert (names_world("grid"), names_world("grid/toy")) == (True, False)


def test_several_callables_of_one_file_are_a_target_each() -> None:
    named = targets_of(Target("my.py:f,g", {"n": "3"}))
    assert named == [Target("my.py:f", {"n": "3"}), Target("my.py:g", {"n": "3"})]
    assert [names_several(name) for name in ("my.py:f,g", "my.py:f", "grid", "gym:A-v1")] == [
        True,
        False,
        True,
        False,
    ]
