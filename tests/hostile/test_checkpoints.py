"""Checkpoints, bundles and tapes that are damaged: one line, never a fault of ours, never a crash."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from support.mutations import damaged, mutated
from support.trainings import SMALL

from hotloop.cli.main import main
from hotloop.core.errors import InputError
from hotloop.core.machine import version
from hotloop.core.record.comparison import BundleFacts, Difference
from hotloop.core.settings import Target
from hotloop.envs import tapes
from hotloop.envs.open import make
from hotloop.lab.validate import bundle as bundles
from hotloop.train import checkpoint

WORDS = [f"{key}={value}" for key, value in SMALL.items()]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that has two checkpoints."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        more = ["train.total_timesteps=256", "train.checkpoint_every=2", "--output", "out"]
        assert main(["train", "grid/toy", "run=a", *WORDS, *more]) in (0, 1, 4)
    assert len(checkpoint.list_checkpoints(folder / "train_dir/a/checkpoints")) == 2
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it that may be damaged, in the current folder; its checkpoints."""
    shutil.copytree(trained / "train_dir", tmp_path / "train_dir")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "train_dir/a/checkpoints"


def resume() -> int:
    return main(["train", "run=a", "--resume", "train.total_timesteps=384", "--output", "out"])


def with_damaged_env(path: Path) -> None:
    """Turn a byte of an env's state in a file that is whole otherwise."""
    content = torch.load(path, weights_only=True)
    content["envs"]["bytes"][-500] ^= 0xFF
    torch.save(content, path)


@pytest.mark.parametrize("kind", ["cut off", "turned", "env", "empty", "part"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(kind, run, capsys):
    before, last = checkpoint.list_checkpoints(run)
    content = last.read_bytes()
    if kind == "env":
        with_damaged_env(last)
    elif kind == "part":
        torch.save({"format": checkpoint.FORMAT}, last)
    else:
        middle = len(content) // 2
        turned = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        last.write_bytes({"cut off": content[:-100], "turned": turned, "empty": b""}[kind])
    assert resume() in (0, 1, 4)
    err = capsys.readouterr().err
    assert f"going on from {before.name}" in " ".join(err.split())


def test_a_run_whose_checkpoints_are_all_damaged_says_so(run, capsys):
    for path in checkpoint.list_checkpoints(run):
        with_damaged_env(path)
    assert resume() == 64
    err = capsys.readouterr().err
    assert "has no whole checkpoint" in err
    assert "its checksum does not fit" in err
    assert err.count("\n") == 1


def test_no_damage_to_a_checkpoint_is_a_fault(trained, tmp_path):
    content = checkpoint.list_checkpoints(trained / "train_dir/a/checkpoints")[-1].read_bytes()
    path = tmp_path / "checkpoint-1.pt"
    whole = 0
    for seed in range(100):
        path.write_bytes(damaged(content, seed))
        try:
            checkpoint.read(path)
        except InputError as error:
            assert "\n" not in str(error)  # noqa: PT017 - what a reader is told
        else:
            whole += 1  # only what pads the parts was hit
    assert whole < 30


def test_damaged_settings_and_windows_of_a_run_are_one_line(run, capsys):
    settings = run.parent / "settings.json"
    plain = json.loads(settings.read_text())
    for path in run.glob("*.windows.npz"):
        path.write_bytes(b"nonsense")
    assert resume() in (0, 1, 4)
    capsys.readouterr()
    for seed in range(40):
        settings.write_text(mutated(plain, seed), encoding="utf-8")
        code = resume()
        assert code in (0, 1, 4, 64), capsys.readouterr().err


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of two sides of ours that agree, with states."""
    target = Target("grid/toy", {"num_envs": 2, "agents": 4})
    batch = make(target.name, **target.keys)
    batch.reset()
    states = tuple(batch.save(env) for env in range(2))
    facts = BundleFacts(
        version=version(),
        reference=target,
        candidate=target,
        tape="random",
        mode="bytes",
        ignore=(),
        difference=Difference(step=3, field="rewards", index=(0,), a="0", b="1"),
        steps_before=0,
        resets=((1, 0),),
    )
    actions = np.zeros((3, 2, 4), np.int32)
    made = bundles.Bundle(facts=facts, actions=actions, start=(states, states), last_good=(states, states))
    return bundles.write_bundle(made, tmp_path_factory.mktemp("bundle") / "a.bundle")


def check_replays(bundle: Path, seeds: range, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Damage what a bundle says, its arrays or its bytes, and play it again."""
    path = tmp_path / "b.bundle"
    with np.load(bundle) as arrays:
        parts = {name: arrays[name] for name in arrays.files}
    facts = json.loads(str(parts["facts"]))
    for seed in seeds:
        if seed % 3 == 0:
            path.write_bytes(damaged(bundle.read_bytes(), seed))
        else:
            changed = dict(parts)
            if seed % 3 == 1:
                changed["facts"] = np.array(mutated(facts, seed).encode("ascii", "replace").decode())
            else:
                chosen = sorted(parts)[seed % len(parts)]
                changed[chosen] = WRONG[seed % len(WRONG)]
            with path.open("wb") as file:
                np.savez(file, **changed)
        code = main(["validate", "--replay", str(path)])
        err = capsys.readouterr().err
        assert code in (0, 2, 4, 64), (seed, err)
        assert code != 64 or err.count("\n") == 1, (seed, err)


WRONG = (
    np.zeros(0, np.uint8),
    np.zeros((3, 2), np.int32),
    np.full((3, 2, 4), 2**40),
    np.full((3, 2, 4), np.nan),
    np.array("text"),
    np.zeros((2, 2, 2, 2), np.int16),
    np.full(300, 7, np.uint8),
    np.zeros((3, 9, 4), np.int32),
)


def test_no_damaged_bundle_is_a_fault(bundle, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["validate", "--replay", str(bundle)]) == 0
    check_replays(bundle, range(120), tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.hostile
def test_no_damaged_bundle_of_many_is_a_fault(bundle, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_replays(bundle, range(120, 720), tmp_path, capsys)


def test_no_damaged_tape_is_a_fault(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    batch = make("grid/toy", num_envs=2, agents=4)
    batch.reset()
    tapes.write(tmp_path / "a.tape", tapes.record(batch, [np.zeros((2, 4), np.int32)] * 5))
    content = (tmp_path / "a.tape").read_bytes()
    with np.load(tmp_path / "a.tape") as arrays:
        header, actions = json.loads(str(arrays["header"])), arrays["actions"]
    for seed in range(200):
        path = tmp_path / "b.tape"
        if seed % 2:
            path.write_bytes(damaged(content, seed))
        else:
            text = mutated(header, seed).encode("ascii", "replace").decode()
            with path.open("wb") as file:
                np.savez(file, header=np.array(text), actions=actions)
        try:
            tape = tapes.read(path)
        except InputError as error:
            assert "\n" not in str(error)  # noqa: PT017 - what a reader is told
        else:
            assert isinstance(tape.seed, int)
            assert isinstance(tape.parameters, dict)
