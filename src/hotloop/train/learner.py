"""Learning: over the samples of a rollout in minibatches, as often as asked."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hotloop.train.kernels import Kernels, Number
from hotloop.train.nan import check_finite
from hotloop.train.ppo import Samples
from hotloop.train.regions import mark
from hotloop.train.rollout import Student
from hotloop.train.settings import TrainSettings


def minibatches(samples: Samples, settings: TrainSettings, generator: torch.Generator) -> Iterator[Tensor]:
    """Shuffled indices for one pass over all samples."""
    recurrent = samples.memory is not None
    count = samples.actions.shape[1] if recurrent else samples.actions.shape[0]
    size = settings.minibatch_size // settings.num_steps if recurrent else settings.minibatch_size
    order = torch.randperm(count, generator=generator).to(samples.actions.device)
    return iter(torch.split(order, size))


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """A network, its optimiser, and how it learns."""

    network: nn.Module
    student: Student
    """The network as it is called: compiled, in mixed precision, or as it is."""
    optimiser: torch.optim.Adam
    settings: TrainSettings
    kernels: Kernels
    generator: torch.Generator

    def learn(self, samples: Samples, imitating: float) -> dict[str, float]:
        """Go over the samples as often as asked; the mean of every term over all minibatches."""
        move = self.kernels.mover(self.optimiser, self.settings.max_grad_norm or float("inf"))
        sums: dict[str, Number] = {}
        count = 0
        for epoch in range(self.settings.update_epochs):
            for number, indices in enumerate(minibatches(samples, self.settings, self.generator)):
                found = self.kernels.objective(self.student, samples, indices, self.settings, imitating)
                mark("forward")
                found.backward()
                mark("backward")
                terms = {**found.terms, "grad_norm": move()}
                check_finite(self.network, terms, samples, indices, epoch=epoch, minibatch=number)
                for name, term in terms.items():
                    sums[name] = sums.get(name, 0) + term
                count += 1
                mark("optimiser")
        return {name: float(total) / count for name, total in sums.items()}
