"""Trainings small enough for a test: a few envs, a narrow network, windows of two updates."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hotloop.core.record import Record
from hotloop.core.settings import Target
from hotloop.envs.batch import Batch
from hotloop.lab.training import settings as folders
from hotloop.lab.training import settings as training_settings
from hotloop.lab.training.run import TrainingWindow, TrainListener, TrainRequest, train
from hotloop.lab.training.settings import RunSettings

SMALL = {
    "num_envs": "8",
    "train.num_steps": "8",
    "train.minibatch_size": "32",
    "train.hidden": "16",
    "train.update_epochs": "1",
    "train.log_every": "2",
    "train.torch_threads": "1",
    "train.tensorboard": "false",
}
STEPS_PER_UPDATE = 64


def small(target: str = "prospector/short", updates: int = 6, **words: object) -> RunSettings:
    """The settings of some updates; `train__eval__every=2` is train.eval.every=2."""
    keys = {key.replace("__", "."): str(value) for key, value in words.items()}
    total = {"train.total_timesteps": str(updates * STEPS_PER_UPDATE)}
    return training_settings.read(Target(target, {**SMALL, **total, **keys}))


def run_of(folder: Path, name: str = "a") -> folders.RunFolder:
    return folders.RunFolder(folder=folder / name)


def trained(
    folder: Path, made: RunSettings, *, name: str = "a", **more: object
) -> tuple[Record, list[TrainingWindow], list[str]]:
    """Train to the end: the record, the windows, and what was said."""
    windows: list[TrainingWindow] = []
    said: list[str] = []
    asked = TrainRequest(settings=made, run=run_of(folder, name), told=made.target, **more)  # type: ignore[arg-type]
    return train(asked, TrainListener(window=windows.append, say=said.append)), windows, said


@contextmanager
def ctrl_c_heard() -> Iterator[None]:
    """Ctrl-C is heard, also where the tests run in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Presses:
    """A watcher that presses Ctrl-C in some of the steps."""

    def __init__(self, *steps: int) -> None:
        self.steps = steps
        self.seen = 0

    def step(self, batch: Batch) -> None:
        self.seen += 1
        if self.seen in self.steps:
            os.kill(os.getpid(), signal.SIGINT)
