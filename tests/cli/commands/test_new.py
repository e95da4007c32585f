import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hotloop.core.errors import ExitCode

ROOT = Path(__file__).parents[3]
MADE = shutil.ignore_patterns(".git", ".venv", ".envs", "*cache*", "*.so", ".design", "artifacts", "build")
"""What a clone would not have."""

LEFT_AS_TWINS = ("farm", "grid", "prospector")
"""Worlds whose native code is not built beside a new one: it takes a minute, and a neighbour is left."""

Command = Callable[..., Any]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hotloop: Command) -> Path:
    """What `new` takes for a checkout, with the current folder somewhere inside."""
    for folder in ("src/hotloop/worlds/grid", "native/engine"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "CMakeLists.txt").touch()
    monkeypatch.chdir(tmp_path / "native/engine")
    return tmp_path


def test_a_world_is_three_files_with_its_name_in_them(hotloop: Command, checkout: Path) -> None:
    assert hotloop("new", "world", "apple_tree").code == ExitCode.FINE
    folder = checkout / "src/hotloop/worlds/apple_tree"
    assert sorted(path.name for path in folder.iterdir()) == ["__init__.py", "apple_tree.h", "twin.py"]
    text = "".join(path.read_text() for path in folder.iterdir())
    assert "@name@" not in text.lower()
    for word in ("namespace hl::apple_tree", "class AppleTree", 'name="apple_tree"'):
        assert word in text


def test_json_names_the_files(hotloop: Command, checkout: Path) -> None:
    answer = hotloop("new", "world", "orchard", "--json").json
    assert answer["world"] == "orchard"
    assert all(Path(path).exists() for path in answer["files"])


@pytest.mark.parametrize(
    "name", ["", "Orchard", "9trees", "a-b", "a b", "../up", "class", "int", "namespace", "ä"]
)
def test_a_name_that_python_or_cpp_cannot_take_is_refused(
    hotloop: Command, checkout: Path, name: str
) -> None:
    said = hotloop("new", "world", name)
    assert (said.code, said.out) == (ExitCode.USAGE, "")
    assert said.err.count("\n") == 1
    assert [path.name for path in (checkout / "src/hotloop/worlds").iterdir()] == ["grid"]


def test_a_world_that_exists_is_left_alone(hotloop: Command, checkout: Path) -> None:
    said = hotloop("new", "world", "grid")
    assert said.code == ExitCode.USAGE
    assert "exists" in said.err
    assert list((checkout / "src/hotloop/worlds/grid").iterdir()) == []


def test_outside_a_checkout_nothing_is_written(hotloop: Command) -> None:
    said = hotloop("new", "world", "orchard")
    assert said.code == ExitCode.USAGE
    assert "not inside a checkout" in said.err
    assert list(Path().iterdir()) == []


def test_only_worlds_have_a_template(hotloop: Command, checkout: Path) -> None:
    assert hotloop("new", "probe", "orchard").code == ExitCode.USAGE


def run(*words: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        words, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_new_world_builds_without_a_warning_and_keeps_every_promise(
    hotloop: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copytree(ROOT, tmp_path / "copy", ignore=MADE)
    for source in (
        path for name in LEFT_AS_TWINS for path in (copy / "src/hotloop/worlds" / name).rglob("*")
    ):
        if source.suffix in (".h", ".cpp"):
            source.unlink()
    monkeypatch.chdir(copy)
    assert hotloop("new", "world", "orchard").code == ExitCode.FINE
    python = (sys.executable, "-m")
    strict = "-Ccmake.define.HOTLOOP_STRICT=ON"
    run(*python, "build", "--wheel", "--no-isolation", strict, "--outdir", tmp_path / "dist", copy, cwd=copy)
    with zipfile.ZipFile(next((tmp_path / "dist").glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path / "built")
    run(*python, "ruff", "check", "--no-cache", "src/hotloop/worlds/orchard", cwd=copy)
    run(*python, "ruff", "format", "--check", "--no-cache", "src/hotloop/worlds/orchard", cwd=copy)
    run(
        Path(sys.executable).with_name("clang-format"),
        "--dry-run",
        "-Werror",
        "src/hotloop/worlds/orchard/orchard.h",
        cwd=copy,
    )

    # -S keeps the editable install of this checkout away from the copy's tests.
    packages = os.pathsep.join([str(tmp_path / "built"), sysconfig.get_path("purelib")])
    tests = (sys.executable, "-S", "-m", "pytest", "-p", "no:cacheprovider")
    chosen = ("tests/worlds/test_contract.py", "-k", "orchard", "-m", "not slow")
    shown = run(*tests, *chosen, cwd=copy, PYTHONPATH=packages)
    assert " passed" in shown
    assert "not built" not in shown
