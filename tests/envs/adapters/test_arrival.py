import sys
from pathlib import Path

import pytest

from hotloop.envs.adapters import when_imported


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "a_late_package.py").write_text("value = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "a_late_package", raising=False)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    return "a_late_package"


def test_the_action_comes_after_the_import_and_only_once(package: str) -> None:
    seen: list[int] = []
    when_imported(package, lambda: seen.append(sys.modules[package].value))
    assert seen == []
    import a_late_package

    assert seen == [7]
    assert a_late_package.__spec__.loader.name == package
    del sys.modules[package]
    __import__(package)
    assert seen == [7]


def test_a_look_at_the_package_that_does_not_import_it_changes_nothing(package: str) -> None:
    from importlib.util import find_spec

    seen: list[int] = []
    when_imported(package, lambda: seen.append(1))
    assert find_spec(package) is not None
    assert seen == []
    __import__(package)
    assert seen == [1]


def test_it_comes_at_once_where_the_package_is_there(package: str) -> None:
    __import__(package)
    seen: list[int] = []
    when_imported(package, lambda: seen.append(1))
    assert seen == [1]


def test_a_package_that_is_missing_is_missing_as_ever(package: str) -> None:
    when_imported("no_such_package_at_all", lambda: 1 / 0)
    with pytest.raises(ModuleNotFoundError, match="no_such_package_at_all"):
        __import__("no_such_package_at_all")
