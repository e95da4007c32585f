import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch

import hotloop
from hotloop.core.errors import InputError
from hotloop.envs.batch import Batch
from hotloop.train import checkpoint
from hotloop.train.settings import TrainSettings
from hotloop.train.trainer import Trainer

SETTINGS = TrainSettings(num_steps=4, minibatch_size=8, update_epochs=1, hidden=(8,))


def batch_of(target: str = "prospector/short", **given: Any) -> Batch:
    return hotloop.make(target, **{"num_envs": 2, **given})


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    with closing(batch_of()) as batch:
        return Trainer(batch, SETTINGS).save(tmp_path / "checkpoints")


def resume(
    path: Path, target: str = "prospector/short", settings: TrainSettings = SETTINGS, **given: Any
) -> Trainer:
    with closing(batch_of(target, **given)) as batch:
        return Trainer(batch, settings, resume=path)


def test_a_folder_means_its_newest_checkpoint(tmp_path: Path) -> None:
    with closing(batch_of()) as batch:
        trainer = Trainer(batch, SETTINGS)
        paths = []
        for _ in range(3):
            trainer.update()
            paths.append(trainer.save(tmp_path))
    assert checkpoint.newest(tmp_path) == paths[-1]
    assert resume(tmp_path).steps == 24


def test_the_last_two_checkpoints_are_kept(tmp_path: Path) -> None:
    with closing(batch_of()) as batch:
        trainer = Trainer(batch, SETTINGS)
        for _ in range(4):
            trainer.update()
            last = trainer.save(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    assert last in tmp_path.iterdir()


def test_a_checkpoint_is_never_overwritten(tmp_path: Path) -> None:
    with closing(batch_of()) as batch:
        trainer = Trainer(batch, SETTINGS)
        first, second = trainer.save(tmp_path), trainer.save(tmp_path)
    assert first != second
    assert checkpoint.newest(tmp_path) == second


KILLED = """
import os, signal, sys
from pathlib import Path
import hotloop
from hotloop.core import files
from hotloop.train.settings import TrainSettings
from hotloop.train.trainer import Trainer

batch = hotloop.make("prospector/short", num_envs=2)
trainer = Trainer(batch, TrainSettings(num_steps=4, minibatch_size=8, update_epochs=1, hidden=(8,)))
trainer.update()
trainer.save(Path(sys.argv[1]))
trainer.update()
die = lambda *given: os.kill(os.getpid(), signal.SIGKILL)
setattr(*{"before the file is on the disk": (os, "fsync", die),
          "before it has its name": (files, "give_name", die)}[sys.argv[2]])
trainer.save(Path(sys.argv[1]))
"""


@pytest.mark.parametrize("moment", ["before the file is on the disk", "before it has its name"])
def test_after_a_kill_while_saving_the_previous_checkpoint_loads(moment: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), moment],
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == -signal.SIGKILL
    assert resume(tmp_path).steps == 8


def test_a_checkpoint_of_another_world_is_refused(saved: Path) -> None:
    with pytest.raises(InputError, match="was made with world=prospector, and this run has grid"):
        resume(saved, "grid/guard")


def test_a_checkpoint_of_another_number_of_envs_is_refused(saved: Path) -> None:
    with pytest.raises(InputError, match="num_envs=2, and this run has 4: give the same num_envs"):
        resume(saved, num_envs=4)


def test_a_checkpoint_of_other_episodes_is_refused(saved: Path) -> None:
    with pytest.raises(InputError, match="seed=42, and this run has 7: give the same seed"):
        resume(saved, seed=7)


def test_a_checkpoint_of_other_parameters_is_refused(saved: Path) -> None:
    with pytest.raises(InputError, match="other parameters"):
        resume(saved, time_max=70)


def test_a_checkpoint_of_another_network_is_refused(saved: Path) -> None:
    settings = TrainSettings(num_steps=4, minibatch_size=8, hidden=(16,))
    with pytest.raises(
        InputError, match=r"another network .*: give the same hidden, embedding, lstm and networks"
    ):
        resume(saved, settings=settings)


def test_a_damaged_checkpoint_is_refused_in_one_line(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes()[:2000])
    with pytest.raises(InputError, match="is no checkpoint that can be read") as caught:
        resume(saved)
    assert "\n" not in str(caught.value)


def test_something_else_is_no_checkpoint(tmp_path: Path) -> None:
    torch.save({"format": 0}, tmp_path / "other.pt")
    with pytest.raises(InputError, match="no checkpoint of this version"):
        resume(tmp_path / "other.pt")


def test_what_is_not_there_is_said_not_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        resume(tmp_path / "none.pt")
    with pytest.raises(InputError, match="has no checkpoint"):
        resume(tmp_path)
    assert checkpoint.newest(tmp_path) is None
