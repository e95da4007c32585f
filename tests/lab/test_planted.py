"""A village with one thing wrong, small, medium and large: profile, then diagnose, names it first."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.profiles import profile

from hotloop.core.record import Record
from hotloop.core.settings import Target
from hotloop.judge.diagnose import Diagnosis, diagnose
from hotloop.lab.programs.launch import Program
from hotloop.lab.programs.profile import profile as profile_program

PLANTED = Path(__file__).parents[1] / "zoo" / "planted.py"

SIZES = ("small", "medium", "large")

STEPS = {"small": "12000", "medium": "8000", "large": "4000"}
"""Of a program, which take some seconds."""

CULPRITS = {
    "encoder": ("Village.encode", None, "view["),
    "query": ("Village.remember", "query", "SELECT"),
    "log": ("Village.tell", "logging", "logger.info"),
    "commit": ("Village.write_down", "commits", ".commit()"),
    "idle": ("Village.pack", "waiting", "self.pool.map"),
}
"""What is planted to its function, the rule that speaks first if one does, and code of the line."""

pytestmark = pytest.mark.long


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / PLANTED.name).write_text(PLANTED.read_text())
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop(PLANTED.stem, None)


def of_env(plant: str, size: str, folder: Path) -> Record:
    return profile(Target(f"{PLANTED.name}:Village", {"plant": plant, "size": size}))


def of_program(plant: str, size: str, folder: Path) -> Record:
    words = (sys.executable, PLANTED.name, plant, size, STEPS[size])
    return profile_program(Program(words), files=folder / "files")


def check(found: Diagnosis, plant: str) -> None:
    function, rule, code = CULPRITS[plant]
    assert found.lever is not None
    assert found.lever.name.startswith(f"{function} (")
    assert code in found.hottest_line
    assert [each.rule for each in found.candidates][:1] == [rule] * bool(rule)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("plant", CULPRITS)
@pytest.mark.parametrize("look", [of_env, of_program])
def test_what_is_planted_is_named_first(look, plant: str, size: str, folder: Path) -> None:  # type: ignore[no-untyped-def]
    check(diagnose(look(plant, size, folder)), plant)
