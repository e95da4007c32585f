import sys
from pathlib import Path

import pytest

from hotloop.core.errors import InputError
from hotloop.mcp.folder import Folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    (tmp_path / "mine.py").write_text("def make(): ...\n")
    (tmp_path / "own_package").mkdir()
    (tmp_path / "own_package" / "envs.py").write_text("def make(): ...\n")
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "own_package", "own_package.envs"):  # another test's, in this process
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if "pytest-of-" not in path])
    return Folder(tmp_path.resolve())


@pytest.mark.parametrize(
    "name",
    [
        "grid/toy",
        "gym:CartPole-v1",
        "pettingzoo:sisl.pursuit_v5",
        "mine.py:make",
        "./mine.py:make",
        "mine:make",
        "own_package.envs:make",
    ],
)
def test_a_target_inside_is_taken(folder: Folder, name: str) -> None:
    assert folder.target(name) == name


def test_a_world_is_asked_for_by_its_presets(folder: Folder) -> None:
    with pytest.raises(InputError, match="grid/toy"):
        folder.target("grid")


@pytest.mark.parametrize(
    "policy", ["random", "greedy", "live:greedy", "tape:a/run.npz", "run:first", "a/x.pt", "mine.py:make"]
)
def test_a_policy_inside_is_taken(folder: Folder, policy: str) -> None:
    assert folder.policy(policy) == policy


@pytest.mark.parametrize("name", ["make", "Env.step", "mine.make", "mine.Env.step", "own_package.envs.make"])
def test_a_function_inside_is_taken(folder: Folder, name: str) -> None:
    assert folder.functions([name]) == [name]


@pytest.mark.parametrize("value", ["a\0b", "x\ny"])
def test_values_of_several_lines_are_refused(folder: Folder, value: str) -> None:
    with pytest.raises(InputError, match="one line"):
        folder.keys({"log": value})


def test_keys_become_words_and_names_that_are_none_are_refused(folder: Folder) -> None:
    given = {"agents": 3, "fast": True, "log": "my run.db", "at": "12:30", "list": "[1, 'a']", "half": "1/2"}
    words = ["agents=3", "fast=true", "log=my run.db", "at=12:30", "list=[1, 'a']", "half=1/2"]
    assert folder.keys(given) == words
    assert folder.keys({"train.network": "mine.py:make"}) == ["train.network=mine.py:make"]
    with pytest.raises(InputError, match="no key"):
        folder.keys({"--output": "x"})
