"""What the trainer does with whole arrays beside the network's own passes, by whoever does it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor, nn

from hotloop.train.settings import TrainSettings

if TYPE_CHECKING:
    from hotloop.train.algorithms.ppo import Samples
    from hotloop.train.normalise import ObservationScale
    from hotloop.train.policy.policy import Student


Number = Tensor | float
"""A tensor where reading it would be waiting for a device."""

USUAL_THREADS = torch.get_num_threads()
"""What torch found fit for the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """What is to be made smaller."""

    terms: dict[str, Number]
    """Among them their sum, `total`."""
    backward: Callable[[], None]
    """Adds its gradient to that of every parameter."""


Move = Callable[[], Number]
"""One step of an optimiser with the gradients there are, which it uses up; the norm they had. Nothing moves
where that is no number."""


class Kernels(Protocol):
    """One way to do it. `TorchKernels` is the specification of every other."""

    name: str
    records: bool
    """Whether what it does is to be recorded as CUDA graphs: see `train/device/graphs.py`."""

    def scale(self, scale: "ObservationScale", raw: Tensor, out: Tensor) -> None:
        """Write observations [rows, ...] into their place, scaled where they are to be."""

    def choose(
        self,
        logits: Tensor,
        masks: Tensor | None,
        uniforms: Tensor,
        *,
        acting: Tensor,
        actions: Tensor,
        log_probs: Tensor,
    ) -> None:
        """Choose by policies [rows, actions] at numbers from [0, 1): actions for the batch and for torch."""

    def objective(
        self,
        student: "Student",
        samples: "Samples",
        indices: Tensor,
        settings: TrainSettings,
        imitating: float,
    ) -> Objective:
        """What the samples of a minibatch are to teach; `imitating` 1 is imitation alone, 0 is PPO alone."""

    def adopt(self, network: nn.Module, settings: TrainSettings) -> None:
        """Take over what can be of a network's passes, from now on."""

    def mover(self, optimiser: torch.optim.Adam, limit: float) -> Move:
        """Steps of an optimiser whose state nobody else touches meanwhile; gradients are cut to a norm."""


def use_threads(count: int) -> None:
    """Let torch work with so many from now on; 0 is the usual number."""
    torch.set_num_threads(count or USUAL_THREADS)
