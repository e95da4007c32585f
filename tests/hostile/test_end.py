"""The end of a run loses nothing."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from support.records import BENCH
from support.trainings import SMALL

from hotloop.cli.main import main
from hotloop.cli.runner import kept
from hotloop.core import files
from hotloop.core.errors import SetupError
from hotloop.core.target import Target
from hotloop.lab.training import folder

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
    assert main(["bench", "grid/toy", *SHORT, "--json"]) == 70
    out, err = capsys.readouterr()
    assert json.loads(out)["kind"] == "bench"
    assert "not saved: cannot write" in err


def test_a_mismatch_stays_one_whatever_the_disk_does():
    def full(_: object) -> Path:
        raise SetupError("cannot write")

    assert kept(replace(BENCH, exit_code=2), full).exit_code == 2


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
    assert main([*words, "--json"]) == 70
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
    assert main(["train", "grid/toy", "run=a", *words, "train.checkpoint_every=2", "--json"]) == 70
    record = json.loads(capsys.readouterr().out)
    assert record["partial"]
    assert len(record["values"]["env_steps_per_s"]) > 0
    assert "No space left" in {each["code"]: each["text"] for each in record["notices"]}["broken-off"]


def test_a_run_that_could_not_be_begun_leaves_its_name_free(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "hotloop.lab.training.folder.write_new", lambda path, _: path.parent.mkdir() or full()
    )
    with pytest.raises(SetupError):
        folder.begin(tmp_path, "a", "grid/toy").claim(Target("grid/toy"))
    assert folder.begin(tmp_path, "a", "grid/toy").name == "a"
