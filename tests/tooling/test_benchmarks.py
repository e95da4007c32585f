"""The scripts of benchmarks/: each starts, and what one leaves behind is what the pages are made from."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.forked import Commands

from figures import Result

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"
SCRIPTS = sorted(
    path.relative_to(FOLDER).as_posix()
    for path in FOLDER.rglob("*.py")
    if ".envs" not in path.parts and "__main__" in path.read_text("utf-8")
)

pytestmark = pytest.mark.slow


def run(script: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, str(FOLDER / script), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    with Commands(tmp_path_factory.mktemp("said")) as commands:
        yield commands


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_starts_and_is_listed(script: str, commands: Commands) -> None:
    done = commands.run(["--help"], FOLDER / script)
    assert done.returncode == 0, done.stderr
    assert "--quick" in done.stdout
    assert f"benchmarks/{script}" in (FOLDER / "README.md").read_text("utf-8")


def test_sides_in_turns_leave_a_table_and_raw_values(tmp_path: Path) -> None:
    said = run("observation_share.py", "--quick", "--output", str(tmp_path))
    (kept,) = tmp_path.glob("*.json")
    facts = json.loads(kept.read_text("utf-8"))
    assert facts["text"] in said
    assert facts["text"] in kept.with_suffix(".md").read_text("utf-8")
    assert not Result(path=kept, facts=facts).may_be_quoted
    original, optimized = (facts["sides"][f"20 agents, {encoder}"] for encoder in ("original", "optimized"))
    assert len(original["ns_per_agent_step"]["step"]) == len(optimized["ns_per_agent_step"]["step"]) == 6
    assert 0 < original["share"]["median"] < 1


@pytest.mark.parametrize("word", ["5", "many"])
def test_too_few_rounds_are_refused(word: str) -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "scaling.py"), "--rounds", word],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
