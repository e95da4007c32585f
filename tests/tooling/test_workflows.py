"""The workflows of GitHub are what GitHub takes, and run what there is."""

import re
import sys
from pathlib import Path
from subprocess import PIPE, STDOUT, run

import pytest

import check

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def test_there_is_one_for_the_checks_one_for_the_wheels_and_one_for_the_site() -> None:
    assert [path.stem for path in WORKFLOWS] == ["ci", "docs", "wheels"]


def complaints(*paths: Path) -> str:
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        "vendor.github-workflows",
        *paths,
    ]
    done = run(command, stdout=PIPE, stderr=STDOUT, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout


def test_github_would_take_them(tmp_path: Path) -> None:
    assert complaints(*WORKFLOWS) == ""
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(WORKFLOWS[0].read_text("utf-8").replace("runs-on", "run-on"))
    assert "run-on" in complaints(wrong)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_what_a_workflow_runs_exists(path: Path) -> None:
    text = path.read_text("utf-8")
    for stage in re.findall(r"\./check (\w+)", text):
        assert check.choose([stage])
    for script in re.findall(r"tools/\w+\.py", text):
        assert (ROOT / script).exists()
