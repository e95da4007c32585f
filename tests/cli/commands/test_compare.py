import json

import pytest
from support.projects import ENV, Project

from hotloop.cli.main import main

SMALL = "num_envs=2 agents=3"
FAST = ["--budget", "2"]

USER = """
import hotloop

class Wrong:
    pass

def toy():
    return hotloop.make("grid/toy", num_envs=2, agents=3)

def wrong_toy():
    batch = toy()
    real = batch.step

    def step(actions):
        real(actions)
        batch.rewards[:] = 1

    batch.step = step
    return batch
"""


def compare(*words: str) -> int:
    return main(["compare", *words])


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hotloop.lab.measure.loop.WARMUP_NS", 0)


def test_a_comparison_prints_its_verdict_and_keeps_its_record(capsys, tmp_path):
    code = compare(f"grid/toy {SMALL}", f"grid/toy {SMALL} encoder=original", *FAST, "--json")
    record = json.loads(capsys.readouterr().out)
    (saved,) = (tmp_path / "artifacts/throughput").glob("*.json")
    assert json.loads(saved.read_text()) == record
    assert code == record["exit_code"]
    (comparison,) = record["comparisons"]
    assert comparison["b"]["name"] == f"grid/toy {SMALL} encoder=original"
    assert record["validation"]["mismatches"] == 0
    # Rounds that something else disturbed are dropped.
    assert 1 <= len(record["values"]["a.ns_per_env_step"]) <= record["method"]["rounds"]
    assert record["method"]["rounds"] >= 6


def test_the_screen_shows_verdict_sides_noise_and_what_could_be_seen(capsys):
    compare(f"grid/toy {SMALL}", f"grid/toy {SMALL} threads=2", *FAST, "--profile", "--control", "actions")
    shown = capsys.readouterr().out
    words = ("times as fast as A", "A against itself", "a change of", "control", "worth end to end")
    assert all(word in shown for word in words)


def test_the_faster_one_that_answers_differently_is_exit_2(capsys, tmp_path):
    (tmp_path / "user.py").write_text(USER)
    assert compare(f"grid/toy {SMALL}", "user.py:wrong_toy", *FAST) == 2
    shown = capsys.readouterr().out
    assert "step 1, rewards[0, 0]: 0.0 against 1.0" in shown
    assert "B is not equal to A" in shown
    assert "is faster" not in shown
    assert "nothing was timed" in shown


def test_a_peer_that_does_other_work_needs_unlike_and_the_headline_says_so(capsys, tmp_path):
    assert compare(f"grid/toy {SMALL}", "grid/toy num_envs=2 agents=4", *FAST) == 64
    assert "agents 3 against 4" in capsys.readouterr().err
    compare(f"grid/toy {SMALL}", "grid/toy num_envs=2 agents=4", *FAST, "--unlike")
    assert "the work differs (agents 3 against 4)" in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("", "grid/toy"), "a side is empty"),
        (("grid/toy 'x", "grid/toy"), "a side cannot be read: No closing quotation"),
        (("grid/toy", "--a-ref", "HEAD", "--b-ref", "HEAD", "--profile"), "no --profile"),
        (("grid/toy", "--a-ref", "HEAD", "--build", "make", "--instructions"), "toy are not counted"),
        (("grid/toy", "grid/ty"), "unknown target 'grid/ty': did you mean grid/toy?"),
        (("grid/toy", "grid/toy agnts=3"), "agnts"),
        (("grid/toy", "grid/toy", "--band", "0"), "--band 0 does not fit"),
        (("grid/toy", "grid/toy", "--budget", "-1"), "--budget -1 does not fit"),
        (("grid/toy", "grid/toy profile=1"), "leave out profile="),
        (("grid/toy", "grid/toy", "--control", "action"), "unknown phase 'action': did you mean actions?"),
        (("grid/toy",), "compare needs two sides"),
        (("grid/toy", "--b-ref", "HEAD"), "give --a-ref too"),
        (("grid/toy", "grid/toy", "--a-ref", "HEAD"), "compared by one target"),
        (("grid/toy", "grid/toy", "--build", "make"), "give --a-ref too"),
        (("a.json", "grid/toy"), "a record can be compared with a record only"),
        (("a.json", "b.json"), "cannot read a.json"),
        (("a.json", "b.json", "--ignore", "infos"), "--ignore is for targets that are replayed here"),
        (("grid/toy", "grid/toy", "--unlike", "--ignore", "infos"), "--ignore is for targets"),
        (("a.json", "b.json", "--equal-steps", "9"), "--equal-steps is for targets that are replayed"),
    ],
)
def test_bad_input_is_one_line_and_64(capsys, words, message):
    assert compare(*words) == 64
    said = capsys.readouterr().err
    assert message in said
    assert len(said.splitlines()) == 1


def test_two_records_are_compared_without_running_anything(capsys, tmp_path):
    for name in ("a.json", "b.json"):
        assert main(["bench", "grid/toy", *SMALL.split(), "--quick", "--output", name]) in (0, 1)
    capsys.readouterr()
    code = compare("a.json", "b.json", "--json")
    record = json.loads(capsys.readouterr().out)
    (comparison,) = record["comparisons"]
    assert code == record["exit_code"]
    assert comparison["ratio"]["pairs"] == 0
    assert comparison["a"]["run_id"] == json.loads((tmp_path / "a.json").read_text())["run_id"]


@pytest.fixture
def project(tmp_path):
    made = Project(tmp_path / "project")
    made.commit(env=ENV)
    made.commit(env=ENV + "# the same\n")
    made.commit(env=ENV.replace("float(action)", "float(action) if self.steps < 4 else -1.0"))
    return made


def test_two_commits_take_turns_in_processes_of_their_own(capsys, project, monkeypatch):
    monkeypatch.chdir(project.root)
    words = ("env.py:make", "--a-ref", "HEAD~2", "--b-ref", "HEAD~1", "--build", "true", *FAST, "--json")
    code = compare(*words)
    record = json.loads(capsys.readouterr().out)
    (comparison,) = record["comparisons"]
    assert code == record["exit_code"] != 2
    assert record["code"] == comparison["b"]["code"]
    assert comparison["b"]["code"]["commit"] == project.git("rev-parse", "HEAD~1")
    assert comparison["a"]["work"]["env_steps"] == comparison["b"]["work"]["env_steps"] > 0
    assert record["path"]["ran"] == {"foreign": 1.0}


def test_a_commit_that_answers_differently_is_exit_2(capsys, project, monkeypatch):
    monkeypatch.chdir(project.root)
    assert compare("env.py:make", "--a-ref", "HEAD~1", "--b-ref", "HEAD", "--build", "true", *FAST) == 2
    assert "step 4: rewards differ" in capsys.readouterr().out


def test_one_commit_is_compared_with_the_working_tree(capsys, project, monkeypatch):
    monkeypatch.chdir(project.root)
    (project.root / "env.py").write_text(ENV.replace("float(action)", "float(action) + 1.0"))
    assert compare("env.py:make", "--a-ref", "HEAD~1", *FAST) == 2
    shown = capsys.readouterr().out
    assert "working tree" in shown
    assert "step 1: rewards differ" in shown


def test_a_commit_that_does_not_build_shows_the_last_lines(capsys, project, monkeypatch):
    monkeypatch.chdir(project.root)
    failing = "echo no such compiler >&2; false"
    assert compare("env.py:make", "--a-ref", "HEAD~1", "--b-ref", "HEAD", "--build", failing) == 64
    assert "no such compiler" in capsys.readouterr().err


def test_more_than_two_sides_are_each_compared_with_the_first(capsys):
    sides = [f"grid/toy {SMALL}{more}" for more in ("", " encoder=original", " drag=9000")]
    code = compare(*sides, *FAST, "--json")
    record = json.loads(capsys.readouterr().out)
    assert [each["b"]["name"] for each in record["comparisons"]] == sides[1:]
    assert {each["a"]["name"] for each in record["comparisons"]} == {sides[0]}
    assert record["comparisons"][1]["outcome"] == "slower"
    assert code == record["exit_code"] == 3
    names = {"a", "b", "c", "c.a", "second.c", "second.c.a"}
    assert {f"{name}.ns_per_env_step" for name in names} <= record["values"].keys()


def test_more_than_two_sides_are_shown_with_their_letters(capsys):
    compare(*[f"grid/toy {SMALL}"] * 2, f"grid/toy {SMALL} drag=9000", *FAST)
    shown = capsys.readouterr().out
    assert "C is slower: " in shown
    assert "times as fast as A" in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.json", "b.json", "c.json"], "records are compared two at a time"),
        (["grid/toy", "grid/toy", "grid/toy train.seed=1"], "trainings are compared two at a time"),
        (["grid/toy", "grid/toy", "grid/toy", "--instructions"], "--instructions counts two sides"),
        (["grid/toy"] * 9, "9 sides are given: compare takes 2 to 8"),
    ],
)
def test_what_is_for_two_sides_refuses_more(capsys, words, said):
    assert compare(*words) == 64
    assert said in capsys.readouterr().err
