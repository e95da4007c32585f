from pathlib import Path

import pytest

from hotloop.core.errors import InputError
from hotloop.mcp.folder import Folder, spelled


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    here = tmp_path / "here"
    here.mkdir()
    (here / "mine.py").write_text("make = dict\n")
    (tmp_path / "other.py").write_text("make = dict\n")
    (here / "away").symlink_to(tmp_path)
    monkeypatch.chdir(here)
    return Folder(here.resolve())


@pytest.mark.parametrize("name", ["grid/toy", "gym:CartPole-v1", "mine.py:make", "./mine.py:make"])
def test_what_is_inside_is_taken(folder: Folder, name: str) -> None:
    assert folder.name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "/etc/x.py:make",
        "../other.py:make",
        "away/other.py:make",
        "~/x.py:make",
        "mine.py:../../x",
        "--output=x:y",
    ],
)
def test_what_is_outside_is_refused(folder: Folder, name: str) -> None:
    with pytest.raises(InputError):
        folder.name(name)


@pytest.mark.parametrize("name", ["os:system", "shutil:rmtree", "numpy:zeros", "gym:os:Id-v0"])
def test_modules_that_are_not_of_the_folder_are_refused(folder: Folder, name: str) -> None:
    with pytest.raises(InputError):
        folder.name(name)


def test_a_world_is_asked_for_by_its_presets(folder: Folder) -> None:
    with pytest.raises(InputError, match="grid/toy"):
        folder.name("grid")


@pytest.mark.parametrize(
    "value", ["/etc/passwd", "../x.db", "away/x.db", "~", "file:/etc/passwd", "a\0b", "x\ny"]
)
def test_values_that_lead_outside_are_refused(folder: Folder, value: str) -> None:
    with pytest.raises(InputError):
        folder.keys({"log": value})


def test_keys_become_words_and_names_that_are_none_are_refused(folder: Folder) -> None:
    assert folder.keys({"agents": 3, "fast": True, "log": "run.db"}) == [
        "agents=3",
        "fast=true",
        "log=run.db",
    ]
    with pytest.raises(InputError, match="no key"):
        folder.keys({"--output": "x"})


def test_a_policy_of_a_tape_outside_is_refused(folder: Folder) -> None:
    assert folder.word("tape:run.npz", "the policy") == "tape:run.npz"
    with pytest.raises(InputError, match="outside"):
        folder.word("tape:/etc/passwd", "the policy")


def test_records_are_not_written_through_a_link_that_leads_outside(folder: Folder, tmp_path: Path) -> None:
    folder.check_places()
    (folder.root / "artifacts").symlink_to(tmp_path)
    with pytest.raises(InputError, match="outside"):
        folder.check_places()


def test_flags_are_spelled_one_word_each(folder: Folder) -> None:
    asked = {"a_flag": 2, "on": True, "off": False, "none": None, "time": ["x", "y"]}
    assert spelled(asked) == ["--a-flag=2", "--on", "--time=x", "--time=y"]
