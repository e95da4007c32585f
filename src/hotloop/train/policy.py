"""A policy over numbered actions, as the log-probabilities of all of them, [..., actions]."""

from typing import Any

import torch
from torch import Tensor

FORBIDDEN = -1e9
"""The logit of an action that a mask forbids: its probability is exactly 0, and nothing becomes NaN."""


def log_probabilities(logits: Tensor, masks: Tensor | None) -> Tensor:
    """Log-probabilities of all actions, in float32."""
    allowed = logits if masks is None else logits.masked_fill(~masks, FORBIDDEN)
    return torch.log_softmax(allowed, dim=-1, dtype=torch.float32)


def entropy(log_probs: Tensor) -> Tensor:
    """The entropy of each policy; forbidden actions add nothing."""
    found: Tensor = Entropy.apply(log_probs)  # type: ignore[no-untyped-call]
    return found


class Entropy(torch.autograd.Function):
    """Minus the sum of p log p; its gradient goes over the actions half as often as the chain rule's."""

    @staticmethod
    def forward(ctx: Any, log_probs: Tensor) -> Tensor:
        probabilities = log_probs.exp()
        ctx.save_for_backward(log_probs, probabilities)
        weighed: Tensor = torch.linalg.vecdot(probabilities, log_probs)
        return weighed.neg_()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        log_probs, probabilities = ctx.saved_tensors
        weighed = probabilities * -gradients[0][..., None]
        return torch.addcmul(weighed, weighed, log_probs)


def chosen(log_probs: Tensor, actions: Tensor) -> Tensor:
    """The log-probability of each policy's action."""
    return log_probs.gather(-1, actions[..., None])[..., 0]


def sample(log_probs: Tensor, uniforms: Tensor) -> Tensor:
    """Actions [rows] by inverting the cumulative probabilities at numbers from [0, 1)."""
    cumulative = log_probs.exp().cumsum(-1)
    heights = uniforms * cumulative[..., -1]  # the sum of float32 probabilities is not quite 1
    return torch.searchsorted(cumulative, heights[..., None], right=True)[..., 0]
