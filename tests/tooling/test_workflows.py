"""The workflows of GitHub are what GitHub takes, and run what there is."""

import os
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


def complaints(*paths: Path, schema: str = "github-workflows") -> str:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *paths]
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


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-actions", "action.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("citation-file-format", "CITATION.cff"),
    ],
)
def test_the_files_that_hosts_read_have_their_form(tmp_path: Path, schema: str, files: str) -> None:
    paths = sorted(ROOT.glob(files))
    assert paths
    assert complaints(*paths, schema=schema) == ""
    wrong = tmp_path / f"wrong{paths[0].suffix}"
    wrong.write_text(
        re.sub(r"(?m)^(description|title|blank_issues_enabled): .*", r"\1: [1]", paths[0].read_text("utf-8"))
    )
    assert complaints(wrong, schema=schema) != ""


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "code"), [("1_000_000_000_000", "0"), ("1_000", "3")])
def test_the_action_writes_the_verdict_for_the_job_and_the_pull_request(
    tmp_path: Path, limit: str, code: str
) -> None:
    [script] = re.findall(
        r"(?s)working-directory: .*?run: \|\n(.*?)\n    - ", (ROOT / "action.yml").read_text("utf-8")
    )
    budget = f'[budget.memory]\ntarget = "grid/toy"\nmetric = "rss_peak_bytes"\nlimit = {limit}\n'
    (tmp_path / "hotloop.toml").write_text(budget)
    files = {name: str(tmp_path / name.lower()) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    more = {
        "ARGUMENTS": "--only memory",
        "RUN_URL": "https://example.invalid/run/1",
        "RUNNER_TEMP": str(tmp_path),
    }
    run(
        ["bash", "-e", "-c", script],
        cwd=tmp_path,
        env={**os.environ, **files, **more, "PATH": path},
        check=True,
    )
    assert (tmp_path / "github_output").read_text() == f"exit-code={code}\n"
    [summary, comment] = [(tmp_path / name).read_text() for name in ("github_step_summary", "hotloop.md")]
    assert "| memory |" in summary
    assert comment.startswith(summary)
    assert "(https://example.invalid/run/1#artifacts)" in comment
