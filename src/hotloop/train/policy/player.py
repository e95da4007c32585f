"""A trained run as a player: its network as a checkpoint has it, without the training around it."""

import os
import textwrap
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from hotloop.core.errors import InputError
from hotloop.envs.batch import Batch
from hotloop.envs.trust import may_call
from hotloop.train import checkpoint
from hotloop.train.evaluation import Actor
from hotloop.train.kernels.kernels import Kernels, use_threads
from hotloop.train.kernels.native import find_kernels
from hotloop.train.normalise import ObservationScale
from hotloop.train.policy.inputs import row_shape
from hotloop.train.policy.networks import Network, default_network
from hotloop.train.policy.policy import make_student
from hotloop.train.settings import TrainSettings

TRUSTED = "HOTLOOP_TRUST"
"""Of the environment: the checkpoint whose network may be called wherever it lies."""

NOT_A_PLAYERS = ("num_envs", "seed")
"""Of what a checkpoint is known by: a player may sit at any batch."""


@dataclass(slots=True, kw_only=True)
class Trained:
    """What an actor needs of a trainer, read from a checkpoint."""

    network: Network
    student: Any
    observation_scale: ObservationScale
    kernels: Kernels
    device: torch.device
    draws: bool


def seat(path: Path, batch: Batch, *, seed: int, threads: int) -> Actor:
    """An actor that does what a run finds best; refuses a run that was trained on other observations."""
    content = checkpoint.read(path)
    now = checkpoint.identity(batch, row_shape(batch))
    for name in NOT_A_PLAYERS:
        del now[name]
    for name, value in now.items():
        if (was := content["identity"].get(name)) != value:
            raise InputError(
                f"{path} was trained with {name}={short(was)}, and {batch.spec.name} has {short(value)}: "
                "give the parameters that it was trained with, or train another"
            )
    use_threads(threads)
    return Actor(trained(path, content, batch), batch, seed=seed, greedy=True)


def short(value: object) -> str:
    return textwrap.shorten(str(value), 100)


def trained(path: Path, content: dict[str, Any], batch: Batch) -> Trained:
    settings, shape = settings_of(content), row_shape(batch)
    check_network(path, settings.network)
    network = default_network(batch.spec, shape, settings)
    scale = ObservationScale(shape, torch.device("cpu"), active=bool(content["observation_scale"]["count"]))
    try:
        network.load_state_dict(content["network"])
        scale.restore(content["observation_scale"])
    except (KeyError, RuntimeError, TypeError) as error:
        raise InputError(
            f"{path} has another network than its settings make: {checkpoint.first_line(error)}"
        ) from None
    kernels = find_kernels(settings, batch.spec.num_actions, acts=batch.spec.layout.acts)
    kernels.adopt(network, settings)
    return Trained(
        network=network.requires_grad_(False),
        student=make_student(network, settings),
        observation_scale=scale,
        kernels=kernels,
        device=torch.device("cpu"),
        draws=settings.algorithm == "ppo",
    )


def check_network(path: Path, name: str) -> None:
    """Refuse a checkpoint that would have somebody's code called, unless it is of this project."""
    trusted = Path(os.environ.get(TRUSTED) or os.devnull).resolve() == path.resolve()
    if name and not trusted and not may_call(name):
        raise InputError(
            f"{path} would call {name!a}, which is not code of this project: look at it first, "
            f"then set {TRUSTED}={path} to run it all the same"
        )


def settings_of(content: dict[str, Any]) -> TrainSettings:
    """Those the run was trained with, on the CPU."""
    known = {field.name for field in fields(TrainSettings)}
    kept = {name: value for name, value in content["settings"].items() if name in known}
    kept |= {name: tuple(value) for name, value in kept.items() if isinstance(value, list)}
    return TrainSettings(**{**kept, "device": "cpu", "compile": False, "kernels": "auto"})
