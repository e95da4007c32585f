"""The end of a run loses nothing."""

import json
import os
import select
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from support.records import BENCH
from support.trainings import SMALL

from hotloop.cli.main import main
from hotloop.cli.results import keep_record
from hotloop.core import files
from hotloop.core.errors import SetupError
from hotloop.core.settings import Target
from hotloop.lab.training import settings

SHORT = ("--rounds", "1", "--iterations", "100", "--warmup", "0")


def test_simultaneous_saves_all_find_a_name(tmp_path):
    with ThreadPoolExecutor(16) as crew:
        saved = list(crew.map(lambda n: files.save(tmp_path / "a.json", str(n)), range(120)))
    assert sorted(int(path.read_text()) for path in saved) == list(range(120))


def test_a_full_disk_does_not_keep_a_record_from_stdout(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write_new", full)
    assert main(["bench", "grid/toy", *SHORT, "--json"]) == 64
    out, err = capsys.readouterr()
    assert json.loads(out)["kind"] == "bench"
    assert "not saved: cannot write" in err


def test_a_mismatch_stays_one_whatever_the_disk_does():
    def full(_: object) -> Path:
        raise SetupError("cannot write")

    assert keep_record(replace(BENCH, exit_code=2), full).exit_code == 2


def test_no_escape_code_reaches_the_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "grid/\x1b[31mtoy"]) == 64
    assert "\x1b" not in capsys.readouterr().err


TINY = ("train.minibatch_size=64", "train.num_steps=16", "--rounds", "1", "--quick")

FULL = OSError(28, "No space left on device")


def full(*_: object, **__: object) -> None:
    raise FULL


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "grid/toy agents=2 num_envs=2", "grid/toy agents=2 num_envs=2", "--budget", "0.05"),
        ("sim", "grid/toy", "agents=2", "episodes=2", "steps=5"),
        pytest.param(
            ("bench", "grid/toy", "agents=2", "num_envs=2", "--mode", "rollout", *TINY),
            marks=pytest.mark.slow,  # loads torch
        ),
    ],
)
def test_every_record_is_told_whatever_the_disk_does(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "write_new", full)
    assert main([*words, "--json"]) == 64
    out, err = capsys.readouterr()
    assert json.loads(out)["kind"] in ("compare", "sim", "bench")
    assert "not saved: cannot write" in err


def test_a_bundle_that_the_disk_does_not_take_leaves_the_mismatch(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    wrong = f"{Path(__file__).parents[1] / 'support' / 'faulty_targets.py'}:wrong_byte"
    monkeypatch.setattr("hotloop.lab.validate.bundle.write_new", full)
    assert main(["validate", wrong, "50", "--against", "grid/toy agents=4 num_envs=4", "--json"]) == 2
    record = json.loads(capsys.readouterr().out)
    assert record["validation"]["bundle"] is None
    assert "no-bundle" in {each["code"] for each in record["notices"]}


@pytest.mark.slow  # loads torch
def test_a_training_whose_checkpoint_the_disk_does_not_take_tells_the_windows_there_were(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hotloop.train.checkpoint.write_new", full)
    words = [f"{key}={value}" for key, value in SMALL.items()]
    assert main(["train", "grid/toy", "run=a", *words, "train.checkpoint_every=2", "--json"]) == 64
    record = json.loads(capsys.readouterr().out)
    assert record["partial"]
    assert len(record["values"]["env_steps_per_s"]) > 0
    assert "No space left" in {each["code"]: each["text"] for each in record["notices"]}["broken-off"]


def test_a_run_that_could_not_be_begun_leaves_its_name_free(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "hotloop.lab.training.settings.write_new", lambda path, _: path.parent.mkdir() or full()
    )
    with pytest.raises(SetupError):
        settings.begin_run(tmp_path, "a", "grid/toy").claim(Target("grid/toy"))
    assert settings.begin_run(tmp_path, "a", "grid/toy").name == "a"


PACED = """
import time
class Env:
    num_actions, steps = 2, 0
    def reset(self, seed=None): return 0, {}
    def step(self, action):
        self.steps += 1
        if self.steps == 300: open("begun", "w").write("now")
        time.sleep(1e-3)
        return 0, 0.0, False, False, {}
"""


def waiting_pipe(path: Path) -> int:
    """The end to read from of a named pipe that can be written to at once."""
    os.mkfifo(path)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK)


LONG = {
    "bench": ("--rounds", "200", "--iterations", "50", "--warmup", "0"),
    "profile": ("--steps", "100000"),
    "soak": ("--steps", "100000"),
}


@pytest.mark.parametrize(
    ("name", "ctrl_c"),
    [
        ("bench", signal.SIG_DFL),
        ("bench", signal.SIG_IGN),
        ("profile", signal.SIG_DFL),
        ("soak", signal.SIG_IGN),
    ],
)
def test_a_closed_terminal_leaves_a_partial_record(tmp_path, name, ctrl_c):
    (tmp_path / "paced.py").write_text(PACED)
    begun = waiting_pipe(tmp_path / "begun")
    code = "import sys; from hotloop.cli.main import main; sys.exit(main())"
    words = [sys.executable, "-c", code, name, "paced.py:Env", *LONG[name]]
    variables = {key: value for key, value in os.environ.items() if key != "HOTLOOP_IN_PROCESS"}
    before = signal.signal(signal.SIGINT, ctrl_c)
    try:
        command = subprocess.Popen(words, cwd=tmp_path, env=variables, stdout=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGINT, before)
    with command:
        assert select.select([begun], [], [], 60)[0]
        command.send_signal(signal.SIGHUP)
        command.communicate(timeout=60)
    assert command.returncode == 130
    folders = (tmp_path / "artifacts" / "throughput", tmp_path / ".design")
    records = [json.loads(each.read_text()) for folder in folders for each in folder.glob("*.json")]
    (record,) = [each for each in records if "kind" in each]
    assert (record["kind"], record["partial"], record["exit_code"]) == (name, True, 130)
