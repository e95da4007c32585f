from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from support.gauges import ENV, WrittenGauge
from support.projects import Project

from hotloop.core.errors import ExitCode, InputError
from hotloop.core.project import Budget, read
from hotloop.core.record import write
from hotloop.core.record.experiments import BudgetResult
from hotloop.core.record.stacks import Stack
from hotloop.lab.gate.gate import (
    BY_OWN_TIME,
    PROBE,
    BudgetRow,
    Profiles,
    Result,
    bisect,
    function_tables,
    own_files,
    run,
    trend,
    weaker,
    with_reasons,
)
from hotloop.lab.gate.measure import LOOKS, Checkouts, GateContext, against_of

pytestmark = pytest.mark.usefixtures("gauges")

TODAY = date(2026, 6, 1)
SLOW = ENV.replace("look = 100", "look = 120")


@pytest.fixture
def how(project: Project) -> Iterator[GateContext]:
    with Checkouts(project.root, say=lambda words: None) as places:
        yield GateContext(places=places, today=TODAY)


def budget(metric: str = "instructions_per_env_step", **more: Any) -> Budget:
    usual: dict[str, Any] = {"name": "b", "target": "env.py:make", "metric": metric, "owner": "sim team"}
    if "limit" not in more:
        usual |= {"max_change": 0.05, "against": "main"}
    return Budget(**usual | more)


def gated(how: GateContext, **more: Any) -> BudgetRow:
    return run([budget(**more)], how).rows[0]


def held(row: BudgetRow) -> BudgetResult:
    assert row.record is not None
    assert row.record.held is not None
    return row.record.held


def branch(project: Project, *texts: str) -> list[str]:
    project.git("checkout", "--quiet", "-b", "feature")
    return [project.commit(env=text) for text in texts]


def test_a_branch_that_costs_the_same_is_green(project: Project, how: GateContext) -> None:
    branch(project, f"# a comment\n{ENV}")
    row = gated(how)
    assert (row.code, held(row).standing) == (ExitCode.FINE, "met")
    assert held(row).against == f"main ({project.git('rev-parse', 'main')[:12]})"


def test_a_branch_that_costs_more_is_red_and_was_counted_twice_each_time_elsewhere_in_memory(
    project: Project, how: GateContext, gauges: type[WrittenGauge]
) -> None:
    branch(project, SLOW)
    row = gated(how)
    assert gauges.layouts == [0, 0, 1, 1]
    assert (row.code, held(row).standing, held(row).runs) == (ExitCode.REGRESSION, "missed", 2)
    assert held(row).change is not None
    assert row.record is not None
    assert (row.record.kind, row.record.label) == ("gate", "b")


def test_a_phase_that_hides_behind_a_faster_one_is_caught_by_its_own_budget(
    project: Project, how: GateContext
) -> None:
    branch(project, "move = 130\nlook = 60\n")
    whole, phase = gated(how), gated(how, metric="phase:move")
    assert (whole.code, phase.code) == (ExitCode.FINE, ExitCode.REGRESSION)
    assert gated(how, metric="phase:look").code is ExitCode.FINE
    assert gated(how, metric="share:move").code is ExitCode.REGRESSION


def test_memory_is_read_from_processes_of_their_own(
    project: Project, how: GateContext, gauges: type[WrittenGauge]
) -> None:
    branch(project, SLOW)
    assert gated(how, metric="rss_peak_bytes").code is ExitCode.REGRESSION
    assert len(gauges.asked) == 12


def test_what_a_branch_gained_since_it_was_left_is_not_held_against_it(
    project: Project, how: GateContext
) -> None:
    branch(project, ENV + "# ours\n")
    project.git("checkout", "--quiet", "main")
    project.commit(env="move = 10\nlook = 10\n")
    project.git("checkout", "--quiet", "feature")
    assert gated(how).code is ExitCode.FINE


def test_on_the_branch_itself_it_is_held_against_the_commit_before(
    project: Project, how: GateContext
) -> None:
    project.commit(env=SLOW)
    row = gated(how)
    assert row.code is ExitCode.REGRESSION
    assert (held(row).against or "").startswith("main, before it (")


def test_the_first_commit_has_no_baseline_yet(how: GateContext) -> None:
    row = gated(how)
    assert (row.code, held(row).standing) == (ExitCode.CANNOT_TELL, "cannot tell")
    assert "no baseline yet" in held(row).why


def test_what_was_changed_and_not_committed_is_measured_against_the_commit(
    project: Project, how: GateContext
) -> None:
    (project.root / "env.py").write_text(SLOW)
    row = gated(how)
    assert row.code is ExitCode.REGRESSION
    assert held(row).against == f"main ({project.git('rev-parse', 'HEAD')[:12]})"
    with pytest.raises(InputError, match="--bisect: uncommitted changes are in no commit"):
        bisect(budget(), how, Profiles(folder=Path("profiles")), say=lambda words: None)


@pytest.mark.parametrize("word", ["nightly", "origin/main"])
def test_a_baseline_that_is_not_there_is_said_and_cannot_be_told(how: GateContext, word: str) -> None:
    row = gated(how, against=word)
    assert row.code is ExitCode.CANNOT_TELL
    assert held(row).why.startswith(f"there is no baseline {word} yet, and no such commit: ")
    assert held(row).runs == 1


def test_a_saved_baseline_is_held_against_on_its_own_machine_only(
    project: Project, how: GateContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    from support.records import MACHINE

    from hotloop.lab.gate import measure

    record = gated(how, limit=1e9).record
    assert record is not None
    write(project.root / "baselines" / MACHINE["fingerprint"] / "nightly.json", record)
    (project.root / "env.py").write_text(SLOW)
    monkeypatch.setattr(measure, "machine", lambda: MACHINE)
    assert gated(how, against="nightly").code is ExitCode.REGRESSION
    monkeypatch.setattr(measure, "machine", lambda: {**MACHINE, "fingerprint": "ffff", "cores": 64})
    elsewhere = gated(how, against="nightly")
    assert elsewhere.code is ExitCode.CANNOT_TELL
    assert "of another machine (cores 4 against 64)" in held(elsewhere).why


def test_a_target_that_is_no_longer_there_is_an_error_of_its_row_alone(
    project: Project, how: GateContext
) -> None:
    rows = run([budget(target="gone.py:make", line=7), budget(limit=1000)], how).rows
    assert (rows[0].code, rows[0].error) == (
        ExitCode.USAGE,
        "line 7: budget.b: gone.py:make: there is no gone.py",
    )
    assert rows[1].code is ExitCode.FINE
    assert Result(rows=rows).code is ExitCode.USAGE


def test_an_expired_budget_is_red_and_names_its_owner(how: GateContext) -> None:
    row = gated(how, limit=1000, expires=date(2026, 5, 1))
    assert (row.code, row.is_missed) == (ExitCode.REGRESSION, False)
    assert "sim team has to renew or remove it" in held(row).why


def test_a_gain_is_green_and_suggests_its_line(project: Project, how: GateContext) -> None:
    branch(project, "move = 50\nlook = 100\n")
    row = gated(how)
    assert row.code is ExitCode.FINE
    assert held(row).tighter == "limit = 154  # in place of max_change and against"


def test_what_is_red_says_which_function_it_is(project: Project, how: GateContext, tmp_path: Path) -> None:
    branch(project, SLOW)
    profiles = Profiles(folder=tmp_path / "profiles")
    result = with_reasons(run([budget()], how), how, profiles)
    record = result.rows[0].record
    assert record is not None
    found = next(each for each in record.findings if each.probe == PROBE)
    functions, phases = found.tables
    assert functions.rows[0][0] == "look (env.py)"
    assert functions.rows[0][3] == pytest.approx(0.1, abs=0.001)
    assert phases.rows[0][0] == "wall/look"
    assert len(list(profiles.folder.glob("*.speedscope.json"))) == 2


def test_what_a_library_takes_is_said_of_the_function_of_the_project_that_asked(project: Project) -> None:
    step, wrap = ("Env.step", "env.py", 1), ("wrap", "env.py", 9)
    library = ("any", "/lib/site-packages/numpy/any.py", 3)
    before: dict[Stack, float] = {(step,): 1.0}
    after: dict[Stack, float] = {(step,): 1.0, (step, wrap): 0.1, (step, wrap, library): 0.4}
    first, second = function_tables(before, after, 1.5, own_files(project.root))
    assert [row[0] for row in first.rows] == ["wrap (env.py)"]
    assert first.rows[0][3] == pytest.approx(0.5)
    assert [row[0] for row in second.rows] == ["any (numpy/any.py)", "wrap (env.py)"]
    (alone,) = function_tables({(step,): 1.0}, {(step, wrap): 1.0}, 1.0, own_files(project.root))
    assert alone.title == BY_OWN_TIME


def test_profiles_of_commits_are_kept_and_not_measured_again(
    project: Project,
    how: GateContext,
    tmp_path: Path,
    gauges: type[WrittenGauge],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from support.records import MACHINE

    from hotloop.lab.gate import gate

    monkeypatch.setattr(gate, "machine", lambda: MACHINE)
    profiles = Profiles(folder=tmp_path / "profiles")
    place = how.places.at("main")
    first, second = profiles.of(budget(), place), profiles.of(budget(), place)
    assert [do for _, do in gauges.asked] == ["profile"]
    assert first.stacks == second.stacks
    monkeypatch.setattr(gate, "machine", lambda: {**MACHINE, "fingerprint": "ffff"})
    assert profiles.of(budget(), place).stacks != first.stacks


def test_the_commit_that_did_it_is_found_and_what_does_not_build_is_skipped(
    project: Project, tmp_path: Path
) -> None:
    texts = [f"{ENV if number < 13 else SLOW}# {number}\n" for number in range(1, 21)]
    commits = branch(project, *texts[:9], f"{texts[9]}broken\n", *texts[10:])
    said: list[str] = []
    build = "! grep -q broken env.py"
    with Checkouts(project.root, build=build, say=lambda words: None) as places:
        how = GateContext(places=places, today=TODAY)
        found = bisect(budget(), how, Profiles(folder=tmp_path / "profiles"), say=said.append)
        assert places.builds <= 6
    assert found.suspects == ((commits[12], "next"),)
    assert any(f"{commits[9][:12]} skip: " in line and "does not build" in line for line in said)
    kept = {path.name[:12] for path in (tmp_path / "profiles").glob("*.json")}
    assert kept == {step.commit[:12] for step in found.steps if step.told != "skip"}


def test_what_is_held_against_no_commit_cannot_be_bisected(how: GateContext, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="budget b is held against no commit"):
        bisect(budget(limit=1), how, Profiles(folder=tmp_path), say=lambda words: None)


def test_earlier_records_of_a_budget_are_its_trend(how: GateContext, tmp_path: Path) -> None:
    for number in range(3):
        record = gated(how, limit=100 + number, enforce=False).record
        assert record is not None
        write(tmp_path / f"{number}-b.json", record)
    (tmp_path / "other-b.json").write_text("{}")
    distances = [record.held.distance for record in trend(tmp_path, "b") if record.held]
    assert [round(each, 2) for each in distances if each is not None] == [-1.0, -0.98, -0.96]


def test_a_commit_that_is_asked_for_twice_is_built_once(project: Project, how: GateContext) -> None:
    branch(project, SLOW)
    assert against_of(budget(), how) == against_of(budget(), how)
    assert how.places.builds == 1


def test_a_target_is_measured_once_for_all_its_budgets(
    project: Project, how: GateContext, gauges: type[WrittenGauge]
) -> None:
    speed = budget(metric="env_steps_per_s", limit=1e6, max_change=None, against=None)
    goal = replace(speed, name="goal", limit=1e9, enforce=False)
    phases = [
        budget(name=name, metric=f"phase:{name}", limit=1e6, max_change=None, against=None)
        for name in ("move", "look")
    ]
    result = run([speed, *phases, goal], how)
    assert [row.budget.name for row in result.rows] == [speed.name, "move", "look", "goal"]
    first, *_, last = (row.record.held for row in result.rows if row.record)
    assert first is not None
    assert last is not None
    assert first.value == last.value
    assert [do for _, do in gauges.asked].count("bench") == 1
    assert [do for _, do in gauges.asked].count("phases") == 1 + LOOKS


def test_an_absolute_budget_reads_what_a_relative_one_measured_in_turns(
    project: Project, how: GateContext, gauges: type[WrittenGauge]
) -> None:
    branch(project, f"# a comment\n{ENV}")
    absolute = budget(name="floor", metric="phase:move", limit=1e6, max_change=None, against=None)
    relative = budget(name="change", metric="phase:move", max_change=0.05, against="main")
    result = run([absolute, relative], how)
    assert [row.code for row in result.rows] == [ExitCode.FINE] * 2
    assert [do for _, do in gauges.asked].count("phases") == 1 + 2 * LOOKS


def test_budgets_that_were_removed_or_loosened_since_the_branch_was_left_are_named(
    project: Project, how: GateContext
) -> None:
    written = '[budget.{0}]\ntarget = "env.py:make"\nmetric = "env_steps_per_s"\nlimit = {1}\n'
    toml = project.root / "hotloop.toml"
    toml.write_text("".join(written.format(name, 1000) for name in ("gone", "speed", "same")))
    project.git("add", "hotloop.toml")
    project.git("commit", "--quiet", "-m", "budgets")
    project.git("checkout", "--quiet", "-b", "work")
    toml.write_text(written.format("speed", 500) + "enforce = false\n" + written.format("same", 2000))
    told = weaker(read(toml), how.places)
    assert [each.rpartition(", since")[0] for each in told] == [
        "budget gone: removed",
        "budget speed: limit loosened from 1,000 to 500",
        "budget speed: no longer enforced",
    ]
