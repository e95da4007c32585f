"""Sinks: where else the numbers of each window go, for those who look at them there."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from hotloop.core.errors import InputError, unknown
from hotloop.core.machine import need

PREFIX = "hotloop/"  # Before every name, so that they stand together


class Sink(Protocol):
    """Takes the numbers of a window."""

    def log(self, values: Mapping[str, float], step: int) -> None: ...

    def close(self) -> None: ...


class TensorBoard:
    """Scalars in a folder of TensorBoard's."""

    def __init__(self, folder: Path) -> None:
        need("tensorboard")
        from hotloop.train.windows import open_board

        self._board = open_board(folder, None)

    def log(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self._board.add_scalar(f"{PREFIX}{name}", value, step)
        self._board.flush()

    def close(self) -> None:
        self._board.close()


class Wandb:
    """The run of Weights & Biases that is open; it keeps its own steps, ours are beside the numbers."""

    def __init__(self) -> None:
        self._run: Any = need("wandb").run
        if self._run is None:
            raise InputError("sink 'wandb' needs a run of W&B: call wandb.init before hotloop.run")

    def log(self, values: Mapping[str, float], step: int) -> None:
        told = {f"{PREFIX}{name}": value for name, value in values.items()}
        self._run.log({**told, f"{PREFIX}step": step})

    def close(self) -> None:
        """The run is its owner's to finish."""


class Mlflow:
    """The run of MLflow that is active."""

    def __init__(self) -> None:
        self._mlflow: Any = need("mlflow")
        if self._mlflow.active_run() is None:
            raise InputError("sink 'mlflow' needs a run of MLflow: call mlflow.start_run before hotloop.run")

    def log(self, values: Mapping[str, float], step: int) -> None:
        told = {f"{PREFIX}{fit(name)}": value for name, value in values.items()}
        self._mlflow.log_metrics(told, step=step)

    def close(self) -> None:
        """The run is its owner's to end."""


def fit(name: str) -> str:
    """A name as MLflow takes one: a metric is a file there, and cannot be the folder of another."""
    return re.sub(r"[^\w\-. ]", "_", name.replace("/", "."))


def open_sinks(asked: Sequence[str | Sink], run: str) -> list[Sink]:
    """Sinks by name, or as they are; refuses what is not installed before anything is trained."""
    known: dict[str, Callable[[], Sink]] = {
        "tensorboard": lambda: TensorBoard(Path("runs") / re.sub(r"[^\w.-]+", "-", run)),
        "wandb": Wandb,
        "mlflow": Mlflow,
    }
    opened: list[Sink] = []
    for each in [asked] if isinstance(asked, str) else asked:
        if isinstance(each, str) and each not in known:
            raise unknown(
                "sink", each, known, f"there are {', '.join(known)}, and objects with log and close"
            )
        opened.append(known[each]() if isinstance(each, str) else each)
    return opened
