"""`hotloop bench` and what was measured before: baselines, and folders of records."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.projects import ENV, Project
from support.records import PROFILE, bench_with

from hotloop.cli.results import split_baselines
from hotloop.core.errors import ExitCode
from hotloop.core.machine import machine
from hotloop.core.record import METHOD, Record, read, write
from hotloop.core.settings import Target

SHORT = ("grid/toy", "num_envs=4", "agents=3", "--iterations", "8", "--warmup", "8", "--rounds", "7")
STEADY = [4.0e6] * 8

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def _steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the noise of so short rounds out of the exit code."""
    monkeypatch.setattr("hotloop.judge.judge.label", lambda cv: "excellent")
    monkeypatch.setattr("hotloop.lab.profile.profile.WARMUP", 64)
    monkeypatch.setattr("hotloop.lab.profile.profile.STEPS", 20 * 64)


def keep(name: str, **changes: Any) -> str:
    """Put a record of another run into a file."""
    write(Path(name), replace(bench_with(STEADY), **changes))
    return name


def refused(said: Any, told: str) -> bool:
    """Whether one line on stderr said so, and nothing else was said."""
    assert (said.code, said.out, said.err.count("\n")) == (ExitCode.USAGE, "", 1), said.err
    assert told in said.err, said.err
    return True


def test_before_and_after_as_any_script_does_it(hotloop: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """So busy a machine keeps rounds of microseconds from telling anything."""
    monkeypatch.setattr(os, "getloadavg", lambda: (50.0, 50.0, 50.0))
    before = hotloop("bench", *SHORT, "--profile", "--phase", "baseline", "--output", "results/baseline.json")
    assert before.code == ExitCode.FINE
    after = hotloop(
        *("bench", *SHORT, "--profile", "--phase", "optimized", "--output", "results/optimized.json"),
        *("--baseline", "results/baseline.json"),
    )
    assert after.code == ExitCode.CANNOT_TELL
    assert "instrumented passes, after the clean rounds" in after.out
    table = hotloop("bench", "--report", "results/")
    assert table.code == ExitCode.FINE
    rows = [line.split() for line in table.out.splitlines() if line.startswith((" baseline", " optimized"))]
    assert [row[0] for row in rows] == ["baseline", "optimized"]
    commit = read(Path("results/baseline.json")).code["commit"][:12]
    assert all(any(cell.endswith("%") for cell in row) for row in rows)
    assert f"all at commit {commit}" in table.out


def test_phases_of_a_bench_are_beside_clean_rounds_not_among_them(hotloop: Command) -> None:
    clean = hotloop("bench", *SHORT, "--json").json
    both = hotloop("bench", *SHORT, "--profile", "--json").json
    assert both["work"] == clean["work"]
    assert both["target"] == clean["target"]
    assert len(both["values"]["env_steps_per_s"]) == 7
    assert len(both["values"]["instrumented_wall_ns"]) == 20
    assert both["overhead"]["ratio"] > 0
    wall, python, step, *inside = both["phases"]
    assert wall["calls"] == 20 * 64
    assert wall["total_ns"] == sum(both["values"]["instrumented_wall_ns"])
    assert python["total_ns"] + step["total_ns"] == wall["total_ns"]
    assert sum(phase["total_ns"] for phase in inside) + both["unaccounted_ns"] == step["total_ns"]


def test_a_baseline_is_kept_under_its_machine_and_found_by_name(hotloop: Command) -> None:
    assert hotloop("bench", *SHORT, "--save-baseline", "main").code == ExitCode.FINE
    path = Path("baselines") / machine()["fingerprint"] / "main.json"
    said = hotloop("bench", *SHORT, "--baseline", "main", "--json")
    assert said.json["comparisons"][0]["a"]["run_id"] == read(path).run_id


def test_a_baseline_is_replaced_only_by_hand(hotloop: Command) -> None:
    hotloop("bench", *SHORT, "--save-baseline", "main")
    path = Path("baselines") / machine()["fingerprint"] / "main.json"
    kept = path.read_text()
    assert refused(hotloop("bench", *SHORT, "--save-baseline", "main"), f"to replace it, first rm {path}")
    assert path.read_text() == kept
    path.unlink()
    assert hotloop("bench", *SHORT, "--save-baseline", "main").code == ExitCode.FINE


def test_a_baseline_of_another_machine_is_refused_with_what_differs(hotloop: Command) -> None:
    keep("baselines/0123456789ab/main.json")
    said = hotloop("bench", *SHORT, "--baseline", "main")
    assert refused(said, "baseline main is of another machine (cpu Example CPU against")
    assert refused(
        hotloop("bench", *SHORT, "--baseline", "baselines/0123456789ab/main.json"), "unlike: machine (cpu"
    )


def test_a_baseline_of_another_workload_kind_or_method_is_refused_before_anything_is_measured(
    hotloop: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    hotloop("bench", *SHORT, "--output", "toy.json")
    toy = read(Path("toy.json"))
    monkeypatch.delattr("hotloop.lab.bench.warm_up_subjects")
    other = (*SHORT[:2], "agents=4", *SHORT[3:])
    assert refused(hotloop("bench", *other, "--baseline", "toy.json"), "workload (agents 3 against 4)")
    arena = ("grid/arena", *SHORT[1:])
    assert refused(hotloop("bench", *arena, "--baseline", "toy.json"), "target grid/toy against grid/arena")
    write(Path("profile.json"), replace(toy, kind="profile"))
    assert refused(hotloop("bench", *SHORT, "--baseline", "profile.json"), "kind (profile against bench)")
    write(Path("old.json"), replace(toy, method=replace(toy.method, version=0)))
    assert refused(
        hotloop("bench", *SHORT, "--baseline", "old.json"), f"method (version 0 against version {METHOD})"
    )
    played = (*SHORT, "--policy", "teacher")
    assert refused(hotloop("bench", *played, "--baseline", "toy.json"), "policy (random against teacher")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--baseline", "none.json"], "cannot read none.json: No such file"),
        (["--baseline", "cut.json"], "cut.json: not a Hotloop record: not JSON, or cut off"),
        (["--baseline", "foreign.json"], "foreign.json: not a Hotloop record"),
        (["--baseline", "newer.json"], "newer.json: it has schema 99"),
        (["--baseline", "mian"], "unknown baseline 'mian': did you mean main? this machine has main"),
        (["--baseline", "../main"], "cannot read ../main"),
        (["--save-baseline", "a/b"], "is no name for a baseline"),
        (["--save-baseline", "x.json"], "is no name for a baseline"),
        (["--save-baseline", ""], "is no name for a baseline"),
        (["--enforce-target"], "give --target-steps-per-sec N"),
        (["--target-steps-per-sec", "0"], "expected more than 0"),
        (["--target-steps-per-sec", "nan"], "expected more than 0"),
        (["--quick", "--thorough"], "exclude each other"),
        (["--mode", "learner"], "unknown mode 'learner': bench measures env_only"),
        (["--rounds", "0"], "--rounds"),
        (["--report", "."], "leave out grid/toy"),
        (["--output", "/dev/null/x.json"], "choose another output"),
    ],
)
def test_wrong_input_is_one_line(hotloop: Command, words: list[str], told: str) -> None:
    Path("cut.json").write_text(bench_with(STEADY).to_json()[:200])
    Path("foreign.json").write_text('{"results": []}')
    Path("newer.json").write_text('{"schema": 99}')
    keep(f"baselines/{machine()['fingerprint']}/main.json")
    before = sorted(Path().rglob("*"))
    assert refused(hotloop("bench", "grid/toy", *words), told)
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize(
    "words", [["--baseline", "x.json"], ["--save-baseline", "x"], ["--output", "x.json"]]
)
def test_one_record_is_not_asked_of_a_world_of_several_presets(hotloop: Command, words: list[str]) -> None:
    assert refused(hotloop("bench", "grid", *words), "is for one record and grid has 3 presets")


def test_a_callable_is_looked_into_too(hotloop: Command) -> None:
    from support import paced_target

    said = hotloop("bench", f"{Path(paced_target.__file__)}:make", "--quick", "--profile")
    assert said.code in (ExitCode.FINE, ExitCode.UNSTABLE)
    assert "instrumented passes, after the clean rounds" in said.out


def test_a_folder_that_cannot_be_made_for_a_baseline_is_refused(hotloop: Command) -> None:
    Path("baselines").write_text("in the way")
    assert refused(hotloop("bench", *SHORT, "--save-baseline", "main"), "cannot make the folder baselines/")


def test_a_folder_is_one_table_oldest_first_whatever_else_is_in_it(hotloop: Command) -> None:
    half = bench_with([2.0e6] * 8)
    keep("all/z.json", label="first", phases=PROFILE.phases)
    write(Path("all/a.json"), replace(half, label="second", created="2025-01-03T00:00:00+00:00"))
    keep("all/b.json", label="third", partial=True, created="2025-01-04T00:00:00+00:00")
    Path("all/cut.json").write_text("{")
    Path("all/notes.txt").write_text("not looked at")
    said = hotloop("bench", "--report", "all")
    assert said.code == ExitCode.FINE
    rows = [" ".join(line.split()) for line in said.out.splitlines()]
    assert rows.index("first grid/toy 4.00 M env-steps/s [4.00 M, 4.00 M] first 80.0%") < rows.index(
        "second grid/toy 2.00 M env-steps/s [2.00 M, 2.00 M] 0.500 [0.500, 0.500] slower"
    )
    assert "third grid/toy 4.00 M env-steps/s [4.00 M, 4.00 M] not compared" in rows
    assert any("was interrupted and cannot be compared" in row for row in rows)
    assert "left out all/cut.json: not a Hotloop record: not JSON, or cut off" in said.err
    assert "notes.txt" not in said.err


def test_a_folder_as_json_is_its_records(hotloop: Command) -> None:
    keep("all/a.json", label="only")
    Path("all/cut.json").write_text("{")
    said = hotloop("bench", "--report", "all", "--json")
    (record,) = said.json
    assert Record.from_json(json.dumps(record)) == read(Path("all/a.json"))
    assert "cut.json" in said.err


def test_a_folder_without_records_is_refused(hotloop: Command) -> None:
    Path("empty").mkdir()
    assert refused(hotloop("bench", "--report", "empty"), "empty holds no record")
    assert refused(hotloop("bench", "--report", "none"), "there is no folder none")


@pytest.mark.parametrize(
    ("words", "rounds", "iterations", "warmup"),
    [
        (["--quick"], 8, 5_000, 20_000),
        (["--thorough"], 60, 20_000, 300_000),
        (["--quick", "--rounds", "9"], 9, 5_000, 20_000),
        (["--thorough", "--iterations", "16", "--warmup", "4"], 60, 16, 4),
        ([], 20, 20_000, 150_000),
    ],
)
def test_a_plan_is_chosen_and_numbers_win(
    hotloop: Command,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    rounds: int,
    iterations: int,
    warmup: int,
) -> None:
    seen = list[Any]()

    def look(target: Target, planned: Any, *_: object, extras: Any, **__: object) -> Record:
        seen.append((planned, extras))
        return bench_with(STEADY)

    monkeypatch.setattr("hotloop.lab.bench.bench", look)
    assert hotloop("bench", "grid/toy", *words).code == ExitCode.FINE
    ((planned, extras),) = seen
    assert (planned.count, planned.iterations, planned.warmup) == (rounds, iterations, warmup)
    assert planned.box_iterations is ("--iterations" not in words)
    assert extras.band == (0.01 if "--thorough" in words else 0.02)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A repository with an env in its last commit."""
    made = Project(tmp_path / "project")
    made.commit(env=ENV)
    monkeypatch.chdir(made.root)
    return made


QUICK = ("env.py:make", "--rounds", "7", "--iterations", "8", "--warmup", "8", "--in-process", "--json")


def test_a_baseline_that_is_a_commit_takes_turns_with_the_present_code(
    hotloop: Command, project: Project
) -> None:
    slow = ENV.replace("self.steps += 1", "self.steps += 1; sum(range(2_000))")
    (project.root / "env.py").write_text(slow)
    said = hotloop("bench", *QUICK, "--baseline", "HEAD")
    assert said.code == ExitCode.REGRESSION
    (compared,) = said.json["comparisons"]
    assert compared["outcome"] == "slower"
    assert compared["ratio"]["pairs"] >= 12
    assert (compared["a"]["code"]["dirty"], compared["b"]["code"]["dirty"]) == (False, True)
    assert "HEAD.second.b.ns_per_env_step" in said.json["values"]


def test_records_and_pages_of_hotloop_are_no_change_of_the_code(hotloop: Command, project: Project) -> None:
    for name in (".design/profile.md", "artifacts/throughput/record.json"):
        path = project.root / name
        path.parent.mkdir(parents=True)
        path.write_text("{}")
    assert ".design" in project.git("status", "--porcelain")
    said = hotloop("bench", *QUICK, "--baseline", "HEAD")
    (compared,) = said.json["comparisons"]
    assert compared["b"]["code"]["dirty"] is False
    (project.root / "helper.py").write_text("")
    said = hotloop("bench", *QUICK, "--baseline", "HEAD")
    (compared,) = said.json["comparisons"]
    assert compared["b"]["code"]["dirty"] is True


def test_a_record_of_a_commit_is_measured_again_in_turns(hotloop: Command, project: Project) -> None:
    assert hotloop("bench", *QUICK, "--output", "before.json").code in (ExitCode.FINE, ExitCode.UNSTABLE)
    slow = ENV.replace("self.steps += 1", "self.steps += 1; sum(range(2_000))")
    (project.root / "env.py").write_text(slow)
    said = hotloop("bench", *QUICK, "--baseline", "before.json")
    assert said.code == ExitCode.REGRESSION
    (compared,) = said.json["comparisons"]
    assert compared["outcome"] == "slower"
    assert compared["ratio"]["pairs"] >= 12
    assert compared["cpu"] is not None
    assert compared["a"]["name"].startswith("env.py:make at before.json (")
    assert "building before.json (" in said.err


def test_a_saved_baseline_is_measured_again_with_the_keys_it_had(hotloop: Command, project: Project) -> None:
    said = hotloop("bench", *QUICK, "--save-baseline", "main")
    assert said.code in (ExitCode.FINE, ExitCode.UNSTABLE)
    (project.root / "env.py").write_text(ENV.replace("self.steps += 1", "sum(range(500)); self.steps += 1"))
    said = hotloop("bench", *QUICK, "--baseline", "main")
    (compared,) = said.json["comparisons"]
    assert compared["outcome"] == "slower"
    assert "a.ns_per_env_step" in "".join(said.json["values"])
    other = hotloop("bench", *QUICK, "size=7", "--baseline", "main")
    assert other.code == ExitCode.USAGE
    assert "unlike: workload (size None against 7)" in other.err


def test_a_record_of_changes_that_no_commit_has_is_only_read(hotloop: Command, project: Project) -> None:
    """Nothing can be built then, and why stands above what two records can tell."""
    (project.root / "env.py").write_text(ENV.replace("self.steps += 1", "self.steps += 1; sum(range(9))"))
    hotloop("bench", *QUICK, "--output", "before.json")
    said = hotloop("bench", *QUICK, "--baseline", "before.json")
    assert "before.json is read, not measured again in turns: env.py had changes" in said.err
    (compared,) = said.json["comparisons"]
    assert compared["a"]["run_id"]


def test_a_record_of_a_commit_that_is_gone_is_only_read(hotloop: Command, project: Project) -> None:
    hotloop("bench", *QUICK, "--output", "before.json")
    record = read(Path("before.json"))
    record.code["project"]["commit"] = "0" * 40
    write(Path("gone.json"), record)
    said = hotloop("bench", *QUICK, "--baseline", "gone.json")
    assert "gone.json is read, not measured again in turns: its commit 000000000000 is not in" in said.err
    assert said.json["comparisons"][0]["a"]["run_id"]


def test_present_code_that_answers_otherwise_than_its_baseline_is_a_mismatch(
    hotloop: Command, project: Project
) -> None:
    (project.root / "env.py").write_text(ENV.replace("float(action)", "float(action) + 1"))
    said = hotloop("bench", *QUICK, "--baseline", "HEAD")
    assert said.code == ExitCode.MISMATCH
    assert "rewards differ" in said.json["comparisons"][0]["difference"]


def test_a_saved_baseline_is_read_even_where_a_branch_has_its_name(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.git("branch", "before")
    project.git("branch", "folder/before")
    assert split_baselines(["before", "folder/before", "HEAD~0", "nobody"]) == (
        ["nobody"],
        ["before", "folder/before", "HEAD~0"],
    )
    kept = Path("baselines") / machine()["fingerprint"] / "before.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("{}")
    capsys.readouterr()
    assert split_baselines(["before"]) == (["before"], [])
    assert (
        "before is a saved baseline here and a commit, too: the baseline is taken" in capsys.readouterr().err
    )


def test_a_commit_is_no_baseline_of_a_ladder(hotloop: Command, project: Project) -> None:
    said = hotloop("bench", "grid/toy", "--mode", "rollout", "--baseline", "HEAD")
    assert refused(said, "--baseline HEAD, a commit, is for --mode env_only")
