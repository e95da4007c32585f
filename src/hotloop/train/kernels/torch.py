"""The trainer's arithmetic in torch's own operations: on every device."""

import math
from functools import partial

import torch
from torch import Tensor, nn

from hotloop.train.algorithms.ppo import Samples, losses
from hotloop.train.kernels.kernels import Move, Objective
from hotloop.train.normalise import ObservationScale
from hotloop.train.policy.actions import NUMBERED, Actions
from hotloop.train.policy.policy import Student
from hotloop.train.settings import TrainSettings


class TorchKernels:
    """See `Kernels`; recorded as CUDA graphs where `records`, else launched one operation at a time."""

    def __init__(self, *, records: bool = False, actions: Actions = NUMBERED) -> None:
        self.name = "graphs" if records else "torch"
        self._actions = actions
        self.records = records

    def scale(self, scale: ObservationScale, raw: Tensor, out: Tensor) -> None:
        scale.write(raw, out)

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
        drawn, likely = self._actions.draw(logits, masks, uniforms)
        actions.copy_(drawn)
        acting.copy_(actions)
        log_probs.copy_(likely)

    def objective(
        self, student: Student, samples: Samples, indices: Tensor, settings: TrainSettings, imitating: float
    ) -> Objective:
        terms = losses(student, samples.take(indices), settings, imitating)
        return Objective(
            terms={name: term.detach() for name, term in terms.items()},
            backward=partial(torch.autograd.backward, (terms["total"],)),
        )

    def adopt(self, network: nn.Module, settings: TrainSettings) -> None:
        """Leave it as it is."""

    def mover(self, optimiser: torch.optim.Adam, limit: float) -> Move:
        parameters = [each for group in optimiser.param_groups for each in group["params"]]

        def move() -> Tensor:
            norm = nn.utils.clip_grad_norm_(parameters, limit, foreach=True)
            if math.isfinite(norm):
                optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            return norm

        return move
