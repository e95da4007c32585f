"""Targets that crash, hang, exit and soil their process, through every command that runs them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.apart import Command, Said
from support.hostile_env import ENDS, HANGS, STANDS, UNTIDY
from support.projects import ENV, Project

from hotloop.core.errors import ExitCode
from hotloop.core.process import worker
from hotloop.core.record import Record
from hotloop.lab.sweep import cells

TARGET = f"{Path(__file__).parents[1] / 'support' / 'hostile_env.py'}:make"

PATIENCE = ("--step-timeout", "2")
"""Short enough for a test; ten times as long for what comes first."""

COMMANDS: dict[str, Callable[..., tuple[str, ...]]] = {
    "bench": lambda *words: ("bench", *words, "--rounds", "5", "--iterations", "100", "--warmup", "100"),
    "profile": lambda *words: ("profile", *words, "--steps", "2000"),
    "compare": lambda *words: ("compare", " ".join(words), TARGET, "--budget", "0.5"),
    "validate": lambda *words: ("validate", words[0], "400", *words[1:], "--against", TARGET),
    "sim": lambda *words: ("sim", *words, "episodes=2", "steps=300"),
    "scale": lambda *words: ("scale", *words, "size=1,2", "--repeats", "1", "--steps", "100", "--no-phases"),
    "soak": lambda *words: ("soak", *words, "--steps", "2000"),
    "tune": lambda *words: ("tune", *words, "size=1,2", "--rounds", "1", "--confirm", "0.1"),
}

STEP = {name: 350 if name in ("bench", "profile", "compare") else 60 for name in COMMANDS}
"""At which it happens: after a few rounds, or in the middle of a course."""

VERDICTS = (ExitCode.FINE, ExitCode.UNSTABLE, ExitCode.REGRESSION, ExitCode.CANNOT_TELL)
"""What a command may say of a measurement of a hundred steps that stands, on any machine."""


SKETCH = """
class Odd:
    def __array__(self, *_, **__): raise SystemExit(3)
class Env:
    num_actions = 2
    def reset(self, **_): return {seen}, {{}}
    def step(self, action): return {answer}
make = Env
"""

ODD = {
    "exits_on_import": "import sys; sys.exit(2)",
    "crashes_on_import": "import ctypes; ctypes.string_at(0)",
    "syntax": "def make(:",
    "nothing": "def make(): return None",
    "step": SKETCH.format(seen="0", answer="None"),
    "array": SKETCH.format(seen="Odd()", answer="(Odd(), 0.0, False, False, {})"),
    "reward": SKETCH.format(seen="0", answer="(0, 'much', False, False, {})"),
}
"""Files that make no env that can be measured, or an odd one."""


WORKERS = """
import os, signal
import gymnasium, numpy
class Env(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Box(-1, 1, (1,)), gymnasium.spaces.Discrete(2)
    age = 0
    def reset(self, *, seed=None, options=None): return numpy.zeros(1, numpy.float32), {}
    def step(self, action):
        self.age += 1
        if self.age == 120: os.kill(os.getpid(), signal.SIGKILL)
        return numpy.zeros(1, numpy.float32), 0.0, False, False, {}
make = Env
"""
"""Whose processes are killed after as many steps."""


TAUGHT = """
import ctypes, os, sys, time
import gymnasium, numpy
class Env(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Box(-1, 1, (1,)), gymnasium.spaces.Discrete(2)
    age = 0
    def reset(self, *, seed=None, options=None): return numpy.zeros(1, numpy.float32), {{}}
    def step(self, action):
        self.age += 1
        if self.age == 40: {how}
        return numpy.zeros(1, numpy.float32), 0.0, False, False, {{}}
make = Env
"""
"""That can be trained on, up to a step."""


def words(how: str, at: int = 1, where: str = "step") -> tuple[str, ...]:
    return (TARGET, f"how={how}", f"at={at}", f"where={where}")


def check_ended(said: Said, where: str) -> None:
    """One line that says what happened where, and the code of what is theirs."""
    assert said.code == ExitCode.USAGE, said.err
    assert "hostile_env.py" in said.line
    assert where in said.line
    assert "Traceback" not in said.err


def check_stands(said: Said, how: str) -> Record:
    """A whole record, a notice of what was undone, and nothing of the target's on stdout."""
    assert said.code in VERDICTS, said.err
    record = Record.from_json(said.out)
    assert not record.partial
    texts = [notice.text for notice in record.notices if notice.code == "untidy"]
    if how in UNTIDY:
        assert UNTIDY[how] in texts[0]
    return record


def test_a_crash_leaves_a_record_of_the_rounds_there_were(apart: Command) -> None:
    said = apart(*COMMANDS["bench"](*words("segfault", 350)), "--json")
    check_ended(said, "was ended by SIGSEGV in step 350 (")
    record = Record.from_json(said.out)
    assert (record.partial, record.exit_code, record.verdict) == (True, ExitCode.USAGE, "cannot tell")
    assert len(record.values["env_steps_per_s"]) == 1, "a digest of a short play comes first"
    assert "broken-off" in {notice.code for notice in record.notices}
    (saved,) = Path("artifacts/throughput").glob("*.json")
    assert saved.read_text() == said.out


def test_an_exit_is_no_verdict(apart: Command) -> None:
    for command in ("profile", "sim"):
        said = apart(*COMMANDS[command](*words("exit_2", 10)))
        check_ended(said, "ended its own process in step 10, with exit code 2")
        assert said.out == ""


def test_a_signal_that_it_sends_itself_is_no_interruption_of_ours(apart: Command) -> None:
    said = apart(*COMMANDS["bench"](*words("sigterm", 350)), "--json")
    check_ended(said, "was ended by SIGTERM in step 350")
    assert Record.from_json(said.out).partial
    said = apart(*COMMANDS["sim"](*words("sigint", 10)))
    check_ended(said, "interrupted itself in step 10")


@pytest.mark.parametrize(("how", "where"), [("os._exit(2)", "in step 40, with exit code 2")])
def test_a_training_is_not_ended_with_its_env(apart: Command, how: str, where: str) -> None:
    check_training(apart, how, where)


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("how", "where"),
    [
        ("ctypes.string_at(0)", "was ended by SIGSEGV in step 40"),
        ("os.kill(os.getpid(), 15)", "was ended by SIGTERM in step 40"),
        ("sys.exit(3)", "in step 40"),
        ("1 / 0", "in step 40"),
        ("time.sleep(3600)", "stood still for 2 s in step 40"),
    ],
)
def test_whatever_ends_the_env_of_a_training_is_one_line(apart: Command, how: str, where: str) -> None:
    check_training(apart, how, where)


def check_training(apart: Command, how: str, where: str) -> None:
    pytest.importorskip("gymnasium")
    Path("taught.py").write_text(TAUGHT.format(how=how))
    keys = ("num_envs=2", "num_steps=16", "minibatch_size=32", "total_timesteps=4096", "run=a")
    said = apart("train", "taught.py:make", *keys, "train.tensorboard=false", *PATIENCE)
    assert said.code == ExitCode.USAGE, said.err
    assert "taught.py:make" in said.line
    assert where in said.line
    assert "Traceback" not in said.err
    assert Path("train_dir/a/settings.json").is_file()


def test_a_network_that_ends_its_process_is_its_owners(apart: Command) -> None:
    pytest.importorskip("torch")
    Path("net.py").write_text("import os\ndef Net(*_, **__): os._exit(3)\n")
    said = apart("train", "prospector", "num_envs=64", "run=a", "train.network=net.py:Net", *PATIENCE)
    assert said.code == ExitCode.USAGE, said.err
    assert "net.py:Net ended its own process" in said.line


def test_what_hangs_shows_its_stack_and_is_ended(apart: Command) -> None:
    said = apart(*COMMANDS["bench"](*words("holds_the_lock", 350)), *PATIENCE)
    check_ended(said, "stood still for 2 s in step 350 (")
    assert "in backtrack" in said.err


@pytest.mark.hostile
def test_a_commit_that_hangs_is_ended(apart: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(Path("project"))
    project.commit(env=ENV)
    project.commit(env=f"{ENV}\nimport time\nEnv.step = lambda self, action: time.sleep(3600)\n")
    monkeypatch.chdir(project.root)
    refs = ("--a-ref", "HEAD~1", "--b-ref", "HEAD")
    said = apart("compare", "env.py:make", *refs, "--budget", "1", "--step-timeout", "0.5")
    assert said.code == ExitCode.USAGE, said.err
    assert "env.py:make stood still for 5 s in a turn after 0 steps" in said.line


def test_what_it_does_to_its_process_is_undone_and_said(apart: Command) -> None:
    target = TARGET.replace(":make", ":untidy")
    said = apart(*COMMANDS["bench"](target), "--json")
    assert said.code in VERDICTS, said.err
    (text,) = [each["text"] for each in said.json["notices"] if each["code"] == "untidy"]
    for how in ("chdir", "umask", "own_sigalrm", "daemon_thread", "closes_everything"):
        assert UNTIDY[how] in text
    assert "left 2 processes running" in text
    assert len(list(Path("artifacts/throughput").glob("*.json"))) == 1


def test_what_ends_with_its_env_was_not_left_running(apart: Command) -> None:
    said = apart(*COMMANDS["profile"](TARGET.replace(":make", ":tidy")), "--json")
    assert said.code in VERDICTS, said.err
    assert not [each for each in said.json["notices"] if each["code"] == "untidy"]


def test_what_it_prints_is_not_on_stdout_and_a_close_that_raises_costs_nothing(apart: Command) -> None:
    target = TARGET.replace(":make", ":loud")
    said = apart(*COMMANDS["bench"](target), "--json")
    assert said.code in VERDICTS, said.err
    assert len(said.json["values"]["env_steps_per_s"]) == 5
    assert "written by the target" in said.err
    assert any("close() raised ValueError: at the end" in each["text"] for each in said.json["notices"])


@pytest.mark.hostile
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("how", ENDS)
def test_whatever_ends_it_is_one_line_and_theirs(apart: Command, command: str, how: str) -> None:
    said = apart(*COMMANDS[command](*words(how, STEP[command])), *PATIENCE)
    check_ended(said, f"in step {STEP[command]}")


@pytest.mark.hostile
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("where", ["make", "reset", "close"])
@pytest.mark.parametrize("how", ["exit_2", "sys_exit", "base_exception", "segfault", "sleeps", "sigkill"])
def test_wherever_it_ends_it_is_one_line_and_theirs(
    apart: Command, command: str, where: str, how: str
) -> None:
    said = apart(*COMMANDS[command](*words(how, 1, where)), "--step-timeout", "0.5")
    if where == "close" and how in ("sys_exit", "base_exception"):
        assert said.code in VERDICTS, said.err
    else:
        check_ended(said, f"in {where}")


@pytest.mark.hostile
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("how", STANDS)
def test_whatever_does_not_end_it_is_undone(apart: Command, command: str, how: str) -> None:
    check_stands(apart(*COMMANDS[command](*words(how, STEP[command])), "--json"), how)


@pytest.mark.hostile
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("fault", ODD)
def test_a_file_that_is_no_target_is_one_line(apart: Command, command: str, fault: str) -> None:
    Path("odd.py").write_text(ODD[fault])
    said = apart(*[word.replace(TARGET, "odd.py:make") for word in COMMANDS[command]("odd.py:make")])
    theirs = said.code == ExitCode.USAGE and said.line
    taken = fault == "nothing" or command in ("bench", "compare", "profile")  # a function is a target, too
    assert theirs or (taken and said.code in VERDICTS), said.err


def test_a_sweep_goes_on_where_it_was_begun_whoever_goes_elsewhere(apart: Command) -> None:
    target = TARGET.replace(str(Path(TARGET).parent), "beside")
    Path("beside").symlink_to(Path(TARGET).parent)
    said = apart(*COMMANDS["scale"](target, "how=chdir", "at=3"), "--json")
    record = check_stands(said, "chdir")
    assert record.sweep is not None
    assert len(list(Path("artifacts/sweeps").glob("*/*.json"))) == 2


BUDGET = """
[budget.{name}]
target = "{target}"
keys = {{how = "{name}", at = 60}}
metric = "env_steps_per_s"
limit = 1
"""


def check_gate(apart: Command, bad: str, told: str) -> None:
    """A budget that ends with its target is a line of its own; the others are measured all the same."""
    Path("hotloop.toml").write_text(
        "".join(BUDGET.format(name=name, target=TARGET) for name in (bad, "fine"))
    )
    said = apart("gate", "--json")
    assert said.code == ExitCode.USAGE, said.err
    (record,) = said.json
    assert (record["label"], record["held"]["standing"]) == ("fine", "met")
    line = " ".join(said.err.split())
    assert f"line 2: budget.{bad}: " in line
    assert told in line


def test_a_budget_whose_target_crashes_is_one_line_and_the_others_are_held(apart: Command) -> None:
    check_gate(apart, "segfault", "the program was ended by SIGSEGV")


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("exit_0", "ended with exit code 0"),
        ("exit_3", "ended with exit code 3"),
        ("sys_exit", "raised: SystemExit: 2"),
        ("two_lines", "raised: ValueError: one two"),
        ("base_exception", "raised: Bare: bare"),
        ("sleeps", "stood still for 3 s (hostile_env.py:"),
        ("deaf", "stood still for 3 s"),
    ],
)
def test_whatever_ends_the_target_of_a_budget_is_one_line(
    apart: Command, how: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOTLOOP_IN_PROCESS", "1")  # where the limit can be shorter
    monkeypatch.setattr(worker, "ANSWER_S", 3.0)
    check_gate(apart, how, told)


SUITE = """
[suite.zoo]
items = [{items}]
"""


@pytest.mark.hostile
def test_items_of_a_suite_end_for_themselves_alone(apart: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "STEP_S", 0.5)
    kinds = {
        "segfault": "was ended by SIGSEGV in step 60",
        "exit_0": "ended its own process in step 60, with exit code 0",
        "sleeps": "stood still for 0.5 s in step 60",
        "sigint": "interrupted itself",
        "base_exception": "raised: Bare: bare",
        "floods": "",
        "chdir": "",
        "fine": "",
    }
    items = [f'{{target = "{TARGET}", keys = {{how = "{how}", at = 60}}}}' for how in kinds]
    Path("hotloop.toml").write_text(SUITE.format(items=", ".join(items)))
    said = apart("bench", "--suite", "zoo", "--rounds", "5", "--iterations", "100", "--json")
    assert said.code == ExitCode.USAGE
    told = {each["target"].split("how=")[1].split()[0]: each for each in said.json["items"]}
    assert list(told) == list(kinds)
    for how, why in kinds.items():
        assert why in (told[how]["refused"] or ""), how
        assert (told[how]["record"] is None) is bool(why), how
        assert told[how]["code"] in ((ExitCode.USAGE,) if why else VERDICTS)


@pytest.mark.hostile
def test_a_slow_env_is_no_hung_one(apart: Command) -> None:
    target = TARGET.replace(":make", ":slow")
    said = apart("bench", target, "--rounds", "6", "--iterations", "1", "--warmup", "1", *PATIENCE)
    assert said.code in VERDICTS, said.err


def test_every_kind_has_a_way_to_end_or_not() -> None:
    assert len({*ENDS, *STANDS}) >= 40
    assert set(HANGS) <= set(ENDS)
    assert set(UNTIDY) <= set(STANDS)


def test_a_killed_worker_of_a_vector_env_is_one_line(apart: Command) -> None:
    pytest.importorskip("gymnasium")
    Path("workers.py").write_text(WORKERS)
    keys = ("num_envs=2", "vector=async")
    said = apart(*COMMANDS["bench"]("workers.py:make", *keys))
    assert said.code == ExitCode.USAGE
    assert "workers.py:make: one of its workers has ended, in step 1" in said.line
