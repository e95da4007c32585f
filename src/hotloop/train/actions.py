"""How a policy's outputs are read as actions: one numbered action, several choices at once, real numbers.

All of them speak of outputs [..., outputs] as a network gives them and of actions [...] or [..., width].
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hotloop.core.world import Acts

HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


NEAREST = 1e-7  # How near a number from [0, 1) may come to its ends before it is made a normal one


@dataclass(frozen=True, slots=True)
class Numbered:
    """One numbered action; `Choices` and `Gaussian` have the same methods."""

    dtype = torch.int64  # Of actions as a rollout keeps them
    shape: tuple[int, ...] = ()  # Of one agent's action, and of the numbers from [0, 1) that it is drawn by

    def draw(self, outputs: Tensor, masks: Tensor | None, uniforms: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions, and their log-probabilities."""
        found = log_probabilities(outputs, masks)
        actions = sample(found, uniforms)
        return actions, chosen(found, actions)

    def likeliest(self, outputs: Tensor, masks: Tensor | None) -> Tensor:
        """Return the action that each policy finds best."""
        return allowed(outputs, masks).argmax(-1)

    def read(self, outputs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log-probability of each action, and each policy's entropy; masks are applied already."""
        return read(outputs, actions)


@dataclass(frozen=True, slots=True)
class Choices:
    """Independent categorical distributions with concatenated logits (MultiDiscrete)."""

    sizes: tuple[int, ...]
    dtype = torch.int64

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.sizes),)

    def draw(self, outputs: Tensor, masks: Tensor | None, uniforms: Tensor) -> tuple[Tensor, Tensor]:
        found = [log_probabilities(part, None) for part in self._parts(allowed(outputs, masks))]
        actions = [sample(part, uniforms[..., place]) for place, part in enumerate(found)]
        likely = [chosen(*each) for each in zip(found, actions, strict=True)]
        return torch.stack(actions, -1), torch.stack(likely, -1).sum(-1)

    def likeliest(self, outputs: Tensor, masks: Tensor | None) -> Tensor:
        return torch.stack([part.argmax(-1) for part in self._parts(allowed(outputs, masks))], -1)

    def read(self, outputs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        each = [
            read(part, picked) for part, picked in zip(self._parts(outputs), actions.unbind(-1), strict=True)
        ]
        return add_up(likely for likely, _ in each), add_up(entropy for _, entropy in each)

    def _parts(self, outputs: Tensor) -> Sequence[Tensor]:
        return torch.split(outputs, list(self.sizes), dim=-1)


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Real numbers, each by a normal distribution of its own: the means, then the logs of the spreads."""

    numbers: int
    dtype = torch.float32

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.numbers,)

    def draw(self, outputs: Tensor, masks: Tensor | None, uniforms: Tensor) -> tuple[Tensor, Tensor]:
        means, logs = torch.split(outputs, self.numbers, dim=-1)
        normal = torch.erfinv(2 * uniforms.clamp(NEAREST, 1 - NEAREST) - 1) * math.sqrt(2)
        likely = -(0.5 * normal.square() + logs + HALF_LOG_TAU).sum(-1)
        return torch.addcmul(means, normal, logs.exp()), likely

    def likeliest(self, outputs: Tensor, masks: Tensor | None) -> Tensor:
        return outputs[..., : self.numbers]

    def read(self, outputs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        means, logs = torch.split(outputs, self.numbers, dim=-1)
        normal = (actions - means) * (-logs).exp()
        entropies = (logs + (0.5 + HALF_LOG_TAU)).sum(-1)
        return -(0.5 * normal.square() + logs + HALF_LOG_TAU).sum(-1), entropies


Actions = Numbered | Choices | Gaussian  # One way to read a policy

NUMBERED = Numbered()


def actions_of(acts: Acts | None) -> Actions:
    """How the policies over these actions are read."""
    if acts is None:
        return NUMBERED
    return Choices(acts.choices) if acts.choices else Gaussian(acts.width)


def add_up(parts: Iterator[Tensor]) -> Tensor:
    return torch.stack(list(parts), -1).sum(-1)


# The logit of an action that a mask forbids: its probability is exactly 0, and nothing becomes NaN.
FORBIDDEN = -1e9


def allowed(logits: Tensor, masks: Tensor | None) -> Tensor:
    """Logits in which what a mask forbids cannot be chosen."""
    return logits if masks is None else logits.masked_fill(~masks, FORBIDDEN)


def log_probabilities(logits: Tensor, masks: Tensor | None) -> Tensor:
    """Log-probabilities of all actions, in float32."""
    return torch.log_softmax(allowed(logits, masks), dim=-1, dtype=torch.float32)


def read(logits: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
    """The log-probability of each policy's action, and its entropy: all that a loss asks of a policy."""
    log_probs, entropies = Reading.apply(logits, actions)  # type: ignore[no-untyped-call]
    return log_probs, entropies


class Reading(torch.autograd.Function):
    """`chosen` and `entropy` of log-probabilities, with a gradient that goes over all actions only twice.

    With p the probabilities and H their entropy, the gradient of log p(a) by the logits is 1[a] - p, and that
    of H is -p (log p + H).
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        log_probs = torch.log_softmax(logits, dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))
        probabilities = log_probs.exp()
        entropies = -torch.linalg.vecdot(probabilities, log_probs)
        ctx.save_for_backward(log_probs, probabilities, entropies, actions)
        ctx.dtype = logits.dtype
        return chosen(log_probs, actions), entropies

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        log_probs, probabilities, entropies, actions = ctx.saved_tensors
        by_action, by_entropy = gradients
        alike = -torch.addcmul(by_action, by_entropy, entropies)
        found = torch.addcmul(alike[..., None], by_entropy[..., None], log_probs, value=-1).mul_(
            probabilities
        )
        found.scatter_add_(-1, actions[..., None], by_action[..., None])
        return found.to(ctx.dtype), None


def chosen(log_probs: Tensor, actions: Tensor) -> Tensor:
    """The log-probability of each policy's action."""
    return log_probs.gather(-1, actions[..., None])[..., 0]


def sample(log_probs: Tensor, uniforms: Tensor) -> Tensor:
    """Actions [rows] by inverting the cumulative probabilities at numbers from [0, 1)."""
    cumulative = log_probs.exp().cumsum(-1)
    heights = uniforms * cumulative[..., -1]  # the sum of float32 probabilities is not quite 1
    return torch.searchsorted(cumulative, heights[..., None], right=True)[..., 0]
