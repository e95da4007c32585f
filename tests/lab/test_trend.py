import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.projects import ENV, Project

from hotloop.cli.main import drawn
from hotloop.core.errors import InputError
from hotloop.core.machine import git
from hotloop.core.record import ENV_STEPS_PER_S, Record
from hotloop.core.settings import Target
from hotloop.core.turn_clock import Turn
from hotloop.judge.baselines import histories
from hotloop.lab.measure.loop import Length, Samples
from hotloop.lab.trend import MOST_COMMITS, commits_since, grouped_times, trend
from hotloop.options.bench import BenchOptions
from hotloop.report.kinds.record import trend as sections
from hotloop.report.terminal import draw

SLOW = ENV.replace("self.steps += 1", "self.steps += 1; sum(range(20_000))")
OTHER = ENV.replace("float(action)", "float(action) + 1.0")
MISSING = "import no_such_module_anywhere\n"


@pytest.fixture(autouse=True)
def _brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotloop.options.bench.TREND_S", 0.1)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def measured(project: Project, since: str, said: list[str] | None = None, **more: Any) -> list[Record]:
    usual: dict[str, Any] = {"every": 1, "build": "true"}
    options = BenchOptions(target="env.py:make", since=since, **usual | more)
    say = (said if said is not None else []).append
    return trend(Target("env.py:make"), options, say=say, project=project.root)


def screen(records: Sequence[Record]) -> str:
    return drawn(draw(sections(records)), io.StringIO())


def test_every_commit_has_a_record_of_the_same_rounds_and_stands_against_the_first(project: Project) -> None:
    shas = [project.commit(env=SLOW + "#\n" * k) for k in range(2)]
    shas += [project.commit(env=ENV + "#\n" * k) for k in range(2)]
    records = measured(project, shas[0])
    assert [each.code["project"]["commit"] for each in records] == shas
    assert [each.code["ancestry"]["position"] for each in records] == [1, 2, 3, 4]
    assert len({len(each.values[ENV_STEPS_PER_S]) for each in records}) == 1
    assert len({each.work.env_steps for each in records}) == 1
    (series,) = histories(reversed(records))
    assert [point.commit for point in series.points] == shas
    text = screen(records)
    assert f"{shas[3][:8]}: " in text
    assert "3 commits before" in text
    assert f"{shas[0][:8]} against itself" in text
    assert "too little history for a change of level: 8 commits more" in text
    assert records[3].metrics[ENV_STEPS_PER_S].median > 3 * records[0].metrics[ENV_STEPS_PER_S].median


def test_a_change_of_level_is_named_with_its_commit(project: Project) -> None:
    slow = [project.commit(env=SLOW + "#\n" * k) for k in range(6)]
    fast = [project.commit(env=ENV + "#\n" * k) for k in range(6)]
    records = measured(project, slow[0])
    assert f"since {fast[0][:8]} +" in screen(records)


def test_commits_that_cannot_be_opened_are_left_out_by_name(project: Project) -> None:
    first, broken, last = (project.commit(env=text) for text in (ENV, MISSING, ENV + "#\n"))
    said: list[str] = []
    records = measured(project, first, said)
    assert [each.code["project"]["commit"] for each in records] == [first, last]
    assert any(broken[:12] in words and "no_such_module_anywhere" in words for words in said)
    assert any(each.code == "commits-left-out" and broken[:12] in each.text for each in records[-1].notices)


def test_a_commit_that_does_other_work_is_left_out(project: Project) -> None:
    wide = ENV.replace("self.size = size", "self.size = size; self.num_agents = 3")
    first, second = project.commit(env=wide), project.commit(env=ENV)
    third = project.commit(env=ENV + "#\n")
    said: list[str] = []
    records = measured(project, first, said)
    assert [each.code["project"]["commit"] for each in records] == [second, third]
    assert any("num_agents 3 against 1" in words for words in said)


def test_a_commit_that_shows_something_else_is_marked(project: Project) -> None:
    first, other = project.commit(env=ENV), project.commit(env=OTHER)
    records = measured(project, first)
    assert [[said.code for said in each.notices if said.code == "outputs-changed"] for each in records] == [
        [],
        ["outputs-changed"],
    ]
    assert "outputs changed at 1 commit between" in " ".join(screen(records).split())
    assert other[:8] in screen(records)


def test_one_commit_in_so_many_and_both_ends_are_chosen(project: Project) -> None:
    shas = [project.commit(env=ENV + "#\n" * k) for k in range(40)]
    root = project.root
    assert commits_since(root, shas[0], 10) == [shas[0], shas[9], shas[19], shas[29], shas[39]]
    assert commits_since(root, shas[35], 1) == shas[35:]
    usual = commits_since(root, shas[0], None)
    assert usual[0] == shas[0]
    assert usual[-1] == shas[-1]
    assert 12 <= len(usual) <= 17


def test_what_is_no_past_commit_is_refused(project: Project) -> None:
    first = project.commit(env=ENV)
    with pytest.raises(InputError, match="is HEAD: give an earlier commit"):
        commits_since(project.root, "HEAD", None)
    with pytest.raises(InputError, match="there is no commit 'nowhere'"):
        commits_since(project.root, "nowhere", None)
    project.git("checkout", "--quiet", "--orphan", "other")
    project.commit(env=OTHER)
    with pytest.raises(InputError, match="is not among the commits before HEAD"):
        commits_since(project.root, first, None)


def test_more_commits_than_can_be_open_are_refused_with_a_number_that_fits(project: Project) -> None:
    first = project.commit(env=ENV)
    for number in range(MOST_COMMITS):
        project.git("commit", "--quiet", "--allow-empty", "--message", str(number))
    with pytest.raises(InputError, match=r"64 are the most: --every 2 fits"):
        commits_since(project.root, first, 1)


def test_nothing_is_left_behind_in_the_repository(project: Project) -> None:
    first = project.commit(env=ENV)
    project.commit(env=ENV + "#\n")
    measured(project, first)
    assert git(project.root, "status", "--porcelain") == ""


def test_fewer_than_two_commits_that_can_be_measured_are_refused(project: Project) -> None:
    first = project.commit(env=MISSING)
    project.commit(env=ENV)
    with pytest.raises(InputError, match="fewer than two commits can be measured"):
        measured(project, first)


def test_ctrl_c_while_a_round_is_taken_down_keeps_the_rounds_before() -> None:
    class Interrupted:
        """A side whose counters are asked for once too often."""

        def __init__(self, calls: int) -> None:
            self.left = calls

        def counters(self) -> dict[str, int]:
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
            return {"env_steps": 4}

    sides = {"first": Interrupted(99), "second": Interrupted(4)}
    samples = Samples(sides, Length(4))
    samples.note({name: Turn(ns=8, env_steps=4) for name in sides})
    with pytest.raises(KeyboardInterrupt):
        samples.note({name: Turn(ns=8, env_steps=4) for name in sides})
    samples.turns["first"].append(Turn(ns=800, env_steps=4))
    assert samples.count == 1
    assert grouped_times(samples, "first") == grouped_times(samples, "second") == [2.0]
