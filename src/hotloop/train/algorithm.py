"""What a trainer asks of a way to learn: a rollout and what is learned from it, and all that it remembers.

`Trainer` chooses between PPO and DQN; no other module needs to know which it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import torch
from torch import Tensor, nn

from hotloop.core.errors import HotloopError
from hotloop.train.kernels.kernels import Kernels
from hotloop.train.networks import Student
from hotloop.train.normalize import ObservationScale
from hotloop.train.settings import TrainSettings

if TYPE_CHECKING:
    from hotloop.train.threads import Fit


PhaseName = Literal["imitation", "fade", "ppo", "explore", "dqn", "double_dqn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What one rollout and the learning from it came to; the trainer counts `index` and steps over a run."""

    index: int = 0  # From 0, over the whole life of a run
    steps: int = 0  # Env-steps of the run so far, these included
    agent_steps: int  # Steps of living agents: in this rollout, or in the run so far
    phase: PhaseName
    # Every term of the objective, grad_norm, and what is reported with them: means over all minibatches.
    losses: Mapping[str, float]
    learning_rate: float
    # Share of labels that were the policy's most likely action; None while no teacher labels.
    agreement: float | None = None


class Algorithm(Protocol):
    """One way to learn on a batch; what it acts with is what evaluation asks of a policy."""

    network: nn.Module
    student: Student
    observation_scale: ObservationScale
    kernels: Kernels
    device: torch.device
    threads: "Fit"  # How many torch works with, and why
    draws: bool  # Whether actions are drawn by what the network says; else the highest is taken
    learned: int  # How often this process learned: from rollouts with PPO, from minibatches with DQN

    def advance(self, steps: int) -> Update:
        """Collect one rollout and learn from it; `steps` are the run's env-steps before it."""

    def collect(self, steps: int) -> object:
        """Collect one rollout that nothing is learned from."""

    def state(self) -> dict[str, Any]:
        """All that it needs to go on as if it had not stopped."""

    def restore(self, content: Mapping[str, Any], *, same_episodes: bool) -> None:
        """Take a state over; `same_episodes` says whether the envs go on where they were."""


class DivergedError(HotloopError):
    """A loss or a gradient that is no number; carries what is needed to look at it."""

    def __init__(self, where: str, evidence: dict[str, Any]) -> None:
        super().__init__(where)
        self.where, self.evidence = where, evidence


def set_learning_rate(optimiser: torch.optim.Adam, settings: TrainSettings, steps: int) -> float:
    """Give an optimiser the learning rate of the rollout that begins after so many env-steps."""
    left = 1 - steps / settings.total_timesteps if settings.anneal_lr else 1.0
    rate = settings.learning_rate * max(left, 0.0)
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)  # the recorded steps read it where it is
        else:
            group["lr"] = rate
    return rate


def load_optimiser(optimiser: torch.optim.Adam, state: dict[str, Any]) -> None:
    """Take over what it has gathered; how it runs is this run's own business."""
    [mine] = optimiser.param_groups
    kept = {name: mine[name] for name in ("lr", "capturable", "fused")}
    optimiser.load_state_dict(state)
    optimiser.param_groups[0].update(kept)
