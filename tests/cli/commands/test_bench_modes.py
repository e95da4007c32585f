"""bench --mode: the ladder, and compare of two trainings, from the command line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.trainings import SMALL

from hotloop.core.errors import ExitCode
from hotloop.core.record import Record, read

WORDS = [f"{key}={value}" for key, value in SMALL.items() if key != "train.tensorboard"]
EVAL = ["train.eval.every=2", "train.eval.episodes=2", "train.eval.steps=3"]
VERDICTS = {ExitCode.FINE, ExitCode.UNSTABLE}

Command = Callable[..., Any]


def test_the_ladder_leaves_a_record_a_rung_and_shows_what_each_costs(hotloop: Command) -> None:
    modes = "env_only,rollout,trainer,trainer_eval"
    said = hotloop("bench", "prospector/short", *WORDS, *EVAL, "--mode", modes, "--rounds", "6")
    assert said.code in VERDICTS
    records = [read(path) for path in sorted(Path("artifacts/throughput").glob("*.json"))]
    assert sorted(record.run_id.rpartition("-")[2] for record in records) == sorted(modes.split(","))
    for mode in modes.split(","):
        assert f" {mode} " in said.out
    assert "speed / rung below" in said.out
    assert said.out.count("[") >= 7
    assert "every probe off" in said.out


def test_one_mode_is_one_record_and_several_are_a_list(hotloop: Command) -> None:
    one = hotloop("bench", "prospector/short", *WORDS, "--mode", "trainer", "--rounds", "1", "--json")
    assert Record.from_json(one.out).work.updates == 1
    two = hotloop("bench", "prospector/short", *WORDS, "--mode", "rollout,trainer", "--rounds", "1", "--json")
    assert [each["label"] for each in two.json] == ["rollout", "trainer"]


@pytest.mark.parametrize("algorithm", ["dqn", "double_dqn"])
def test_a_key_of_the_trainer_measures_the_training(hotloop: Command, algorithm: str) -> None:
    learns = [
        f"train.algorithm={algorithm}",
        "train.num_steps=2",
        "train.hidden=8",
        "agents=20",
        "num_envs=2",
    ]
    said = hotloop("bench", "farm/decision", *learns, "--rounds", "1", "--json")
    assert said.code == ExitCode.FINE
    assert Record.from_json(said.out).label == "trainer"


def test_an_enforced_target_that_is_missed_is_exit_code_3(hotloop: Command) -> None:
    goal = ("--target-steps-per-sec", "1e12", "--enforce-target")
    said = hotloop("bench", "prospector/short", *WORDS, "--mode", "trainer", "--rounds", "1", *goal)
    assert said.code == ExitCode.REGRESSION
    assert "trainer: 1000 G env-steps/s: the median is 100.0% below" in said.out


def test_a_rung_is_held_against_an_earlier_one_of_its_kind_only(hotloop: Command) -> None:
    bench = ("bench", "prospector/short", *WORDS, "--rounds", "6")
    hotloop(*bench, "--mode", "trainer", "--output", "before.json")
    hotloop(*bench, "--mode", "rollout", "--output", "other.json")
    said = hotloop(*bench, "--mode", "trainer", "--baseline", "before.json", "--json")
    assert len(said.json["comparisons"]) == 1
    unlike = hotloop(*bench, "--mode", "trainer", "--baseline", "other.json", "--json")
    assert unlike.code == ExitCode.USAGE
    assert "policy (untrained policy against learning policy)" in unlike.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--mode", "trainr"], "did you mean trainer"),
        (["--mode", "trainer", "--profile"], "--profile is for --mode env_only"),
        (["--mode", "trainer", "--policy", "greedy"], "--policy is for --mode env_only"),
        (["--mode", "env_only,trainer", "--baseline", "a.json"], "cannot read a.json"),
        (["--mode", "env_only,trainer", "--output", "a.json"], "--output a.json is for one record"),
        (["--mode", "trainer", "train.gama=1"], "did you mean train.gamma"),
        (["--mode", "env_only", "train.gamma=0.5"], "unknown key 'train.gamma'"),
    ],
)
def test_what_a_mode_cannot_do_is_refused(hotloop: Command, words: list[str], told: str) -> None:
    said = hotloop("bench", "prospector/short", *words)
    assert (said.code, said.out) == (ExitCode.USAGE, "")
    assert told in said.err
    assert said.err.count("\n") == 1


def side(*more: str) -> str:
    return " ".join(["prospector/short", *WORDS, *more])


def test_two_trainings_are_compared_with_their_returns(hotloop: Command) -> None:
    a, b = side("train.gamma=0.9", *EVAL), side("train.gamma=0.5", *EVAL)
    said = hotloop("compare", a, b, "--budget", "0.01", "--return-after", "100")
    assert said.code in {ExitCode.FINE, ExitCode.REGRESSION, ExitCode.CANNOT_TELL}
    assert "train.gamma 0.9 against 0.5" in said.out
    assert "after 100 env-steps" in said.out
    (path,) = Path("artifacts/throughput").glob("*.json")
    assert len(read(path).values["a.return"]) == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([side("train.gamma=0.9"), side("train.clip_coef=0.1")], "differ in train.gamma, train.clip_coef"),
        ([side("train.gamma=0.9"), "grid/guard"], "name one target"),
        ([side(), side("train.gamma=0.9"), "--profile"], "training is compared whole"),
        ([side(), side("train.gamma=0.9"), "--policy", "greedy"], "training is compared whole"),
        (["prospector", "prospector", "--return-after", "9"], "--return-after is for trainings"),
    ],
)
def test_what_trainings_cannot_be_asked_is_refused(hotloop: Command, words: list[str], told: str) -> None:
    said = hotloop("compare", *words)
    assert (said.code, said.out) == (ExitCode.USAGE, "")
    assert told in said.err
