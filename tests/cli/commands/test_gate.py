import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.gauges import ENV, WrittenGauge
from support.projects import Project

from hotloop.core.errors import ExitCode
from hotloop.core.record import read
from hotloop.lab.gate import gate, init, measure

Command = Callable[..., Any]

SLOW = ENV.replace("look = 100", "look = 150")

TOML = """
[budget.cost]
target = "env.py:make"
metric = "instructions_per_env_step"
max_change = "5%"
against = "main"
reason = "training waits for it"
owner = "sim team"

[budget.goal]
target = "env.py:make"
metric = "instructions_per_env_step"
limit = 180
enforce = false
"""


@pytest.fixture(autouse=True)
def gauges(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (gate, init, measure):
        monkeypatch.setattr(module, "RemoteMeasurer", WrittenGauge)
    WrittenGauge.asked, WrittenGauge.layouts = [], []


@pytest.fixture
def project(hotloop: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A repository with budgets on main, and a branch that is as good; the current folder is inside."""
    made = Project(tmp_path / "project")
    made.git("checkout", "--quiet", "-b", "main")
    (made.root / "hotloop.toml").write_text(TOML)
    (made.root / ".gitignore").write_text("artifacts\n")
    made.commit(env=ENV)
    made.git("checkout", "--quiet", "-b", "feature")
    made.commit(env=f"{ENV}# as good\n")
    (made.root / "inside").mkdir()
    monkeypatch.chdir(made.root / "inside")
    return made


def test_green_is_0_and_leaves_a_record_a_budget(hotloop: Command, project: Project) -> None:
    said = hotloop("gate")
    assert said.code == ExitCode.FINE
    assert "green: 2 budgets" in said.out
    assert "not yet (target)" in said.out
    assert "10.0% short of the target" not in said.out
    records = sorted((project.root / "artifacts/gate").glob("*.json"))
    held = [read(path).held for path in records]
    assert [each.name for each in held if each] == ["cost", "goal"]


def test_red_is_3_and_says_whom_to_ask_why_and_which_function(
    hotloop: Command, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    project.commit(env=SLOW)
    project.commit(env=f"{SLOW}# later\n")
    said = hotloop("gate", "--only", "cost", "--bisect")
    assert said.code == ExitCode.REGRESSION
    for words in ("red: 1 budget", "ask sim team", "training waits for it", "look (env.py)"):
        assert words in said.out
    guilty = project.git("rev-parse", "HEAD~1")[:12]
    assert f"cost is missed since {guilty} next" in said.out
    text = summary.read_text()
    assert text.startswith("before\n## hotloop gate\n")
    assert "| cost | **missed** |" in text
    (record,) = [read(path) for path in (project.root / "artifacts/gate").glob("*-cost.json")]
    assert record.exit_code == ExitCode.REGRESSION
    (picture,) = (project.root / "artifacts/gate").glob("*.difference.svg")
    assert "+10.0% of the whole" in picture.read_text()


def test_a_floor_that_is_missed_too_is_not_bisected_and_keeps_nothing_from_being_told(
    hotloop: Command, project: Project
) -> None:
    floor = "[budget.a-floor]\ntarget = 'env.py:make'\nmetric = 'instructions_per_env_step'\nlimit = 210\n"
    (project.root / "hotloop.toml").write_text(f"{floor}{TOML}")
    project.commit(env=SLOW)
    said = hotloop("gate", "--bisect")
    assert said.code == ExitCode.REGRESSION
    assert "red: 3 budgets" in said.out
    assert "budget a-floor is held against no commit" in said.out
    assert "cost is missed since " in said.out


def test_changes_that_are_in_no_commit_are_refused_before_anything_is_measured(
    hotloop: Command, project: Project
) -> None:
    (project.root / "env.py").write_text(SLOW)
    said = hotloop("gate", "--bisect")
    assert (said.code, WrittenGauge.asked) == (ExitCode.USAGE, [])
    assert "uncommitted changes are in no commit" in said.err


def test_json_prints_the_records_and_nothing_else(hotloop: Command, project: Project) -> None:
    said = hotloop("gate", "--json")
    assert [record["held"]["standing"] for record in said.json] == ["met", "missed"]


def test_the_distance_to_a_target_is_a_trend(hotloop: Command, project: Project) -> None:
    hotloop("gate", "--only", "goal")
    (project.root / "env.py").write_text("move = 90\nlook = 95\n")
    said = hotloop("gate", "--only", "goal")
    assert "over time" in said.out
    assert "short of the target" in said.out


def test_list_measures_nothing(hotloop: Command, project: Project) -> None:
    said = hotloop("gate", "--list")
    assert said.code == ExitCode.FINE
    assert "sim team" in said.out
    assert WrittenGauge.asked == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--only", "costs"), "unknown budget 'costs': did you mean cost"),
        (("--budget", "0"), "--budget 0 does not fit"),
        (("env.py:make",), "env.py:make is given and not used"),
        (("--init",), "--init needs a target"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    hotloop: Command, project: Project, words: tuple[str, ...], said: str
) -> None:
    answer = hotloop("gate", *words)
    assert (answer.code, answer.out) == (ExitCode.USAGE, "")
    assert said in answer.err


def test_a_malformed_file_is_refused_with_line_and_key(hotloop: Command, project: Project) -> None:
    with (project.root / "hotloop.toml").open("a") as file:
        file.write("owners = 'me'\n")
    said = hotloop("gate")
    assert said.code == ExitCode.USAGE
    assert "hotloop.toml: line 15: budget.goal.owners: unknown key 'owners'" in said.err


def test_without_a_file_it_says_how_to_begin(hotloop: Command) -> None:
    said = hotloop("gate")
    assert said.code == ExitCode.USAGE
    assert "hotloop gate --init writes a first one" in said.err


def test_a_target_that_is_gone_is_64_and_the_others_are_told(hotloop: Command, project: Project) -> None:
    with (project.root / "hotloop.toml").open("a") as file:
        file.write("[budget.old]\ntarget = 'gone.py:f'\nmetric = 'env_steps_per_s'\nlimit = 1\n")
    said = hotloop("gate")
    assert said.code == ExitCode.USAGE
    assert "error: 3 budgets" in said.out
    assert "line 15: budget.old: gone.py:f: there is no gone.py" in said.out
    assert "met" in said.out


def test_the_self_test_says_what_it_planted(hotloop: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = [case for case in init.planted() if case.metric == measure.COUNTED]
    monkeypatch.setattr(init, "planted", lambda: counted)
    said = hotloop("gate", "--self-test")
    assert said.code == ExitCode.FINE
    assert "ok      a slow-down, by instructions: expected regression, was regression" in said.out
    monkeypatch.setattr(measure, "needs_another", lambda runs: False)
    monkeypatch.setattr(measure, "settle", lambda runs: measure.replace(runs[-1], standing="met"))
    broken = hotloop("gate", "--self-test", "--json")
    assert broken.code == ExitCode.FAULT
    assert [case["found"] for case in json.loads(broken.out)] == ["fine", "fine", "fine"]
    assert "the gate is broken: a slow-down, by instructions" in broken.err
