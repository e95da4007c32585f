"""Proximal policy optimisation: advantages, samples, losses, and the passes of minibatches over them.

Arrays are [steps, rows, ...], times first; a row is one agent of one env. Nothing here knows a world.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from hotloop.train.algorithms.algorithm import DivergedError
from hotloop.train.algorithms.imitation import imitation_loss
from hotloop.train.kernels.device import take_rows
from hotloop.train.kernels.kernels import Kernels, Number
from hotloop.train.normalise import scan
from hotloop.train.policy.actions import NUMBERED, Actions
from hotloop.train.policy.networks import Memory
from hotloop.train.policy.policy import Student, allowed
from hotloop.train.processes.ranks import ALONE, Ranks
from hotloop.train.rollout import Rollout
from hotloop.train.settings import TrainSettings
from hotloop.train.timing import mark


def advantages(
    rewards: Tensor,
    values: Tensor,
    ends: Tensor,
    last_values: Tensor,
    *,
    gamma: float,
    gae_lambda: float,
    turns: Tensor | None = None,
) -> Tensor:
    """Generalised advantage estimates; `ends` is 1 where a step ended its episode, however it ended.

    The rewards of truncated steps already hold what the values promise beyond them. `turns` is -1 where the
    next row is another player's, whose gain is this one's loss.
    """
    goes_on = 1 - ends if turns is None else (1 - ends) * turns
    next_values = torch.cat((values[1:], last_values[None]))
    surprises = rewards + gamma * next_values * goes_on - values
    return scan(surprises, gamma * gae_lambda * goes_on)


def standardised(values: Tensor) -> Tensor:
    """Values with mean 0 and deviation 1; one alone has no deviation, and is its own mean."""
    if values.numel() == 1:
        return torch.zeros_like(values)
    variance, mean = torch.var_mean(values)
    return (values - mean) / (variance.sqrt() + 1e-8)


def policy_loss(ratio: Tensor, advantage: Tensor, clip_coef: float) -> Tensor:
    """The clipped objective: nothing is gained by moving a probability beyond the clip."""
    clipped = ratio.clamp(1 - clip_coef, 1 + clip_coef)
    return -torch.min(ratio * advantage, clipped * advantage).mean()


def value_loss(values: Tensor, returns: Tensor) -> Tensor:
    """Half the mean squared error of the critic."""
    return 0.5 * (values - returns).square().mean()


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """What is learned from: [samples, ...], or [steps, rows, ...] for a network with a memory."""

    observations: Tensor
    actions: Tensor
    log_probs: Tensor
    advantages: Tensor
    returns: Tensor
    masks: Tensor | None = None
    labels: Tensor | None = None
    begins: Tensor | None = None
    lives: Tensor | None = None
    """Which samples are somebody's; nothing is learned from the others."""
    memory: Memory | None = None
    acts: Actions = NUMBERED
    """How actions are read from what a network says."""

    def take(self, indices: Tensor) -> "Samples":
        """Some samples; of a network with a memory some rows, with all their steps."""
        if self.memory is None:
            return replace(self, **{name: take_rows(array, indices) for name, array in self.arrays()})  # type: ignore[arg-type]
        some: dict[str, Any] = {name: array.index_select(1, indices) for name, array in self.arrays()}
        some["memory"] = tuple(part.index_select(0, indices) for part in self.memory)
        return replace(self, **some)

    def inputs(self, indices: Tensor) -> tuple[Tensor, Memory | None, Tensor | None]:
        """What a student is called with to learn from some samples."""
        if self.memory is None:
            return self.observations.index_select(0, indices), None, None
        begins = None if self.begins is None else self.begins.index_select(1, indices)
        hidden, cell = (part.index_select(0, indices) for part in self.memory)
        return self.observations.index_select(1, indices), (hidden, cell), begins

    def numbers(self, indices: Tensor) -> Tensor:
        """Where some samples lie among all, one after the other: those of a row are a row's length apart."""
        if self.memory is None:
            return indices
        steps, rows = self.log_probs.shape
        return (torch.arange(0, steps * rows, rows)[:, None] + indices).flatten()

    def lived(self) -> "Samples":
        """The samples of a network with a memory that are somebody's, one after the other.

        What was seen stays as it is, since nobody looks at it again.
        """
        if self.lives is None:
            return self
        some = {name: array[self.lives] for name, array in self.arrays() if name != "observations"}
        return replace(self, memory=None, **some)  # type: ignore[arg-type]

    def arrays(self) -> Iterator[tuple[str, Tensor]]:
        """Name every array there is, but for the memory."""
        for name in self.__slots__:
            array = getattr(self, name)
            if array is not None and name not in ("memory", "acts"):
                yield name, array


def samples_of(kept: Rollout, advantage: Tensor) -> Samples:
    """Everything a rollout has to teach."""
    arrays = {
        "observations": kept.observations,
        "actions": kept.actions,
        "log_probs": kept.log_probs,
        "advantages": advantage,
        "returns": advantage + kept.values,
        "masks": kept.masks,
        "labels": kept.labels,
        "lives": kept.lives,
    }
    if kept.memory is not None:
        return Samples(**arrays, begins=kept.begins, memory=kept.memory, acts=kept.acts)  # type: ignore[arg-type]
    flat = {name: None if array is None else array.flatten(0, 1) for name, array in arrays.items()}
    return Samples(**flat, acts=kept.acts)  # type: ignore[arg-type]


def losses(student: Student, part: Samples, settings: TrainSettings, imitating: Number) -> dict[str, Tensor]:
    """Every term of the objective and their sum; `imitating` 1 is imitation alone, 0 is PPO alone.

    A tensor stands for what lies between.
    """
    known = None if isinstance(imitating, Tensor) else imitating
    logits, values, _ = student(part.observations, part.memory, part.begins)
    if part.memory is not None and part.lives is not None:
        logits, values, part = logits[part.lives], values[part.lives], part.lived()
    logits = allowed(logits, part.masks)
    terms = {"value": value_loss(values, part.returns)}
    total = settings.vf_coef * terms["value"]
    if known is None or known < 1:
        terms |= ppo_terms(logits, part, settings)
        total = total + (1 - imitating) * (terms["policy"] - settings.ent_coef * terms["entropy"])
    if (known is None or known > 0) and part.labels is not None:
        terms["imitation"] = imitation_loss(logits, part.labels, part.acts)
        total = total + imitating * terms["imitation"]
    return {"total": total, **terms}


def ppo_terms(logits: Tensor, part: Samples, settings: TrainSettings) -> dict[str, Tensor]:
    log_probs, entropies = part.acts.read(logits, part.actions)
    logratio = log_probs - part.log_probs
    ratio = logratio.exp()
    advantage = standardised(part.advantages) if settings.norm_adv else part.advantages
    with torch.no_grad():
        approx_kl = (ratio - 1 - logratio).mean()
        clip_fraction = ((ratio - 1).abs() > settings.clip_coef).float().mean()
    return {
        "policy": policy_loss(ratio, advantage, settings.clip_coef),
        "entropy": entropies.mean(),
        "approx_kl": approx_kl,
        "clip_fraction": clip_fraction,
    }


def minibatches(samples: Samples, settings: TrainSettings, generator: torch.Generator) -> Iterator[Tensor]:
    """Shuffled indices for one pass over all samples that are somebody's."""
    recurrent = samples.memory is not None
    count = samples.log_probs.shape[1] if recurrent else samples.log_probs.shape[0]
    size = settings.minibatch_size // settings.num_steps if recurrent else settings.minibatch_size
    if samples.lives is not None:
        return of_the_living(samples.lives, size, generator)
    order = torch.randperm(count, generator=generator).to(samples.actions.device)
    return iter(torch.split(order, size))


def of_the_living(lives: Tensor, size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Minibatches of about a size and all alike, however many there are to share out; none of nobody."""
    living = (lives if lives.ndim == 1 else lives.any(0)).nonzero()[:, 0]
    order = living[torch.randperm(len(living), generator=generator).to(living.device)]
    return iter(torch.tensor_split(order, -(-len(living) // size)) if len(living) else ())


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
    ranks: Ranks = ALONE
    """Who else learns, each from a share of every minibatch."""

    def learn(self, samples: Samples, imitating: float) -> dict[str, float]:
        """Go over the samples as often as asked; the mean of every term over all minibatches."""
        move = self.kernels.mover(self.optimiser, self.settings.max_grad_norm or float("inf"))
        parameters = list(self.network.parameters())
        sums: dict[str, Number] = {}
        count = 0
        orders = [
            list(minibatches(samples, self.settings, self.generator))
            for _ in range(self.settings.update_epochs)
        ]
        scaled, settings = self.agreed(samples, orders)
        for epoch, (part, order) in enumerate(zip(scaled, orders, strict=True)):
            for number, indices in enumerate(order):
                with self.ranks.together():
                    found = self.kernels.objective(self.student, part, indices, settings, imitating)
                    mark("forward")
                    found.backward()
                    if self.at_once:
                        self.ranks.average(parameters)
                mark("backward")
                terms = {**found.terms, "grad_norm": move()}
                check_finite(self.network, terms, samples, indices, epoch=epoch, minibatch=number)
                for name, term in terms.items():
                    sums[name] = sums.get(name, 0) + term
                count += 1
                mark("optimiser")
        return self.ranks.mean({name: float(total) / count for name, total in sums.items()})

    @property
    def at_once(self) -> bool:
        """Whether ranks average what they found once all of it is there."""
        return self.ranks.several and self.student is self.network

    def agreed(
        self, samples: Samples, orders: Sequence[Sequence[Tensor]]
    ) -> tuple[list[Samples], TrainSettings]:
        """The samples of each pass, their advantages scaled by whole minibatches' over all ranks."""
        if not self.ranks.several or not self.settings.norm_adv:
            return [samples] * len(orders), self.settings
        axis = 0 if samples.memory is None else 1
        parts = [[samples.advantages.index_select(axis, each).double() for each in order] for order in orders]
        sums = [
            [part.numel(), float(part.sum()), float(part.square().sum())] for row in parts for part in row
        ]
        counts, totals, squares = self.ranks.added(torch.tensor(sums, dtype=torch.float64)).unbind(1)
        means = totals / counts
        deviations = ((squares - counts * means**2) / (counts - 1)).clamp(min=0).sqrt() + 1e-8
        scales = iter(zip(means, deviations, strict=True))
        found = []
        for order, row in zip(orders, parts, strict=True):
            scaled = samples.advantages.clone()
            for indices, part in zip(order, row, strict=True):
                mean, deviation = next(scales)
                scaled.index_copy_(axis, indices, ((part - mean) / deviation).to(scaled.dtype))
            found.append(replace(samples, advantages=scaled))
        return found, replace(self.settings, norm_adv=False)


def check_finite(
    network: nn.Module,
    terms: dict[str, Number],
    samples: Samples,
    indices: Tensor,
    *,
    epoch: int,
    minibatch: int,
) -> None:
    """Stop at the first loss or gradient norm that is not finite, and name what it came from."""
    if not math.isfinite(terms["total"] + terms["grad_norm"]):
        raise diverged(network, terms, samples, indices, epoch=epoch, minibatch=minibatch)


def diverged(
    network: nn.Module,
    terms: Mapping[str, Number],
    samples: Samples,
    indices: Tensor,
    *,
    epoch: int,
    minibatch: int,
) -> DivergedError:
    """What to raise where a minibatch gave a loss or a gradient that is no number."""
    arrays = dict(samples.take(indices).arrays())
    there = {**arrays, **{name: torch.as_tensor(term) for name, term in terms.items()}}
    first = next((name for name, array in there.items() if not torch.isfinite(array).all()), "?")
    where = f"epoch {epoch}, minibatch {minibatch}: first in {first}"
    evidence = {
        "epoch": epoch,
        "minibatch": minibatch,
        "first": first,
        "indices": indices,
        "samples": arrays,
        "losses": {name: float(term) for name, term in terms.items()},
        "network": network.state_dict(),
    }
    return DivergedError(where, evidence)
