"""Somebody else's environments on the command line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hotloop.core.errors import ExitCode
from hotloop.core.record import read

Command = Callable[..., Any]
SHORT = ("--steps", "200")
VERDICTS = (ExitCode.FINE, ExitCode.UNSTABLE)

USER = """
import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

print("hello from an import")

class Env(gymnasium.Env):
    observation_space = Box(-100, 100, (2,), np.float32)
    action_space = Discrete(2)

    def __init__(self, wasted=0, wrong=False):
        self.wasted, self.wrong, self.age = wasted, wrong, 0

    def look(self):
        for _ in range(self.wasted):
            pass
        return np.full(2, self.age + (self.wrong and self.age == 7), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.age = 0
        return self.look(), {}

    def step(self, action):
        if self.age == 0:
            print("hello from a step")
        self.age += 1
        return self.look(), float(action), self.age >= 20, False, {}

def slow():
    return Env(wasted=2_000)

def fast():
    return Env()

def wrong():
    return Env(wrong=True)

def broken():
    raise OSError("no map found")
"""


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch, hotloop: Command) -> None:
    monkeypatch.setattr("hotloop.lab.profile.profile.WARMUP", 40)
    monkeypatch.setattr("hotloop.lab.measure.loop.WARMUP_NS", 0)
    Path("user.py").write_text(USER)


def test_a_profile_leaves_its_page_and_record_and_prints_what_it_cost(hotloop: Command) -> None:
    said = hotloop("profile", "user.py:slow", *SHORT, "--time", "user.Env.look")
    assert said.code in VERDICTS
    (page,), (samples,) = Path(".design").glob("*.md"), Path(".design").glob("*.speedscope.json")
    (kept,) = {*Path(".design").glob("*.json")} - {samples}
    record = read(kept)
    paths = {phase.path: phase for phase in record.phases}
    inside, whole = paths["wall/env.step/user.Env.look"].p50_ns, paths["wall"].p50_ns
    assert inside is not None
    assert whole is not None
    assert inside > 0.5 * whole  # of the usual call: others on the machine lengthen some of them
    assert abs(record.unaccounted_ns or 0) < 0.05 * paths["wall"].total_ns
    assert "user.Env.look" in said.out
    assert "instrument  takes" in said.out
    assert "user.Env.look | " in page.read_text()
    assert "left out" not in hotloop("bench", "--report", ".design").err


def test_json_is_all_there_is_on_stdout_whatever_an_env_prints(hotloop: Command) -> None:
    said = hotloop("profile", "user.py:fast", *SHORT, "--json")
    assert json.loads(said.out)["target"]["name"] == "user.py:fast"


def test_bench_takes_the_same_targets(hotloop: Command) -> None:
    said = hotloop("bench", "gym:CartPole-v1", "num_envs=2", "--rounds", "6", "--iterations", "40", "--json")
    record = json.loads(said.out)
    assert record["path"]["ran"] == {"foreign": 1.0}
    assert record["target"]["variant"]["interface"] == "gymnasium vector"


def test_compare_gives_a_ratio_with_its_interval_for_equal_envs(hotloop: Command) -> None:
    said = hotloop("compare", "user.py:slow", "user.py:fast", "--budget", "2", "--json")
    (comparison,) = json.loads(said.out)["comparisons"]
    assert comparison["difference"] is None
    assert comparison["ratio"]["low"] <= comparison["ratio"]["estimate"] <= comparison["ratio"]["high"]


def test_compare_ends_with_two_where_the_faster_one_answers_differently(hotloop: Command) -> None:
    said = hotloop("compare", "user.py:slow", "user.py:wrong", "--budget", "0.05")
    assert said.code == ExitCode.MISMATCH
    assert "step 7, observations[0, 0]: 7.0 against 8.0" in said.out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("profile", "user.py:broken"), 64, "user.py:broken raised: OSError: no map found ("),
        (("profile", "user.py:fats"), 64, "unknown callable 'fats': did you mean fast?"),
        (("profile", "nowhere.py:make"), 64, "there is no file nowhere.py"),
        (("profile", "gym:NoSuch-v0"), 64, "NoSuch"),
        (("profile", "puffer:breakout"), 64, "pip install pufferlib"),
        (("profile", "user.py:fast", "--time", "user.Env.lok"), 64, "has no function lok"),
        (("profile", "user.py:fast", "--policy", "tape:none.tape"), 64, "cannot read the tape none.tape"),
        (("profile", "user.py:fast", "--policy", "user:nobody"), 64, "unknown callable 'nobody'"),
        (("profile", "user.py:fast", "--policy", "teacher"), 64, "unknown player 'teacher'"),
        (("profile", "user.py:fast", "--record", "user.py"), 64, "user.py exists"),
        (("profile", "grid", "--record", "x.tape"), 64, "--record is for one target"),
        (("profile", "user.py:fast", "colour=red"), 64, "unexpected keyword argument 'colour'"),
    ],
)
def test_bad_input_is_one_line_with_its_exit_code(
    hotloop: Command, words: tuple[str, ...], code: int, message: str
) -> None:
    said = hotloop(*words, *(SHORT if words[0] == "profile" else ()))
    assert said.code == code
    assert message in said.err
    errors = [line for line in said.err.splitlines() if line.startswith("hotloop: ")]
    assert len(errors) == 1
    assert "Traceback" not in said.err
