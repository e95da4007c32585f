"""Envs that fork and come back, that remove their folder, and that write to the page of their supervisor."""

from pathlib import Path

import pytest
from support.apart import Command

from hotloop.core.errors import ExitCode
from hotloop.core.record import Record

ENVS = """
import os, tempfile, time
class Env:
    num_actions, age, steps = 2, 0, 0
    def reset(self, seed=None):
        self.age = 0
        return 0, {}
    def step(self, action):
        self.age += 1
        Env.steps += 1
        return self.age, 0.0, False, self.age >= 50, {}

class Forks(Env):
    def step(self, action):
        if Env.steps in (150, 160): os.fork()
        return super().step(action)


class Homeless(Env):
    def __init__(self):
        folder = tempfile.mkdtemp()
        os.chdir(folder)
        os.rmdir(folder)

class Hides(Env):
    def step(self, action):
        if Env.steps == 150:
            from hotloop.core.process import lifeline
            lifeline.pulse[1] = WHAT
            while True: time.sleep(0.1)
        return super().step(action)
"""

SHORT = ("--rounds", "6", "--iterations", "50", "--warmup", "50")

MEASURED = (ExitCode.FINE, ExitCode.UNSTABLE, ExitCode.REGRESSION, ExitCode.CANNOT_TELL)

COMMANDS = {
    "bench": ("bench", "envs.py:{}", *SHORT),
    "profile": ("profile", "envs.py:{}", "--steps", "400"),
    "validate": ("validate", "envs.py:{}", "200", "--against", "envs.py:Env"),
    "compare": ("compare", "envs.py:{}", "envs.py:Env", "--budget", "0.5"),
    "soak": ("soak", "envs.py:{}", "--steps", "400"),
    "sim": ("sim", "envs.py:{}", "episodes=2", "steps=100"),
}


@pytest.fixture(autouse=True)
def _envs(apart: Command) -> None:
    Path("envs.py").write_text(ENVS)


def words(name: str, env: str) -> tuple[str, ...]:
    return tuple(each.format(env) for each in COMMANDS[name])


@pytest.mark.parametrize("where", [(), ("--in-process",)])
def test_a_fork_that_comes_back_from_a_step_is_ended_and_named(
    apart: Command, where: tuple[str, ...]
) -> None:
    said = apart(*words("bench", "Forks"), "--json", *where)
    assert said.code in MEASURED, said.err
    record = Record.from_json(said.out)  # one, whole
    (told,) = [each.text for each in record.notices if "forked" in each.text]
    assert "step() forked this process and came back in" in told
    assert len(list(Path("artifacts/throughput").glob("*.json"))) == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_an_env_that_removes_its_folder_loses_nothing_that_was_measured(apart: Command, name: str) -> None:
    said = apart(*words(name, "Homeless"), *(["--json"] if name != "profile" else []))
    assert said.code in MEASURED, said.err
    saved = [*Path("artifacts/throughput").glob("*.json"), *Path(".design").glob("profile-*.json")]
    assert len([each for each in saved if '"kind"' in each.read_text()]) == 1


@pytest.mark.parametrize("what", [1, 2, 77])
def test_a_step_is_ended_in_time_whatever_the_env_writes_to_the_page(apart: Command, what: int) -> None:
    envs = Path("envs.py")
    envs.write_text(envs.read_text().replace("WHAT", str(what)))
    said = apart(*words("bench", "Hides"), "--step-timeout", "0.5")
    assert said.code == ExitCode.USAGE
    assert "stood still for 0.5 s in step 151 (envs.py:" in said.line
