"""A policy over numbered actions, and the network that it is asked of, in its precision and compiler."""

import shutil
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from hotloop.core.errors import MissingError, SetupError
from hotloop.train.policy.networks import Memory
from hotloop.train.settings import TrainSettings

FORBIDDEN = -1e9
"""The logit of an action that a mask forbids: its probability is exactly 0, and nothing becomes NaN."""

Student = Callable[[Tensor, Memory | None, Tensor | None], tuple[Tensor, Tensor, Memory | None]]


def allowed(logits: Tensor, masks: Tensor | None) -> Tensor:
    """Logits in which what a mask forbids cannot be chosen."""
    return logits if masks is None else logits.masked_fill(~masks, FORBIDDEN)


def log_probabilities(logits: Tensor, masks: Tensor | None) -> Tensor:
    """Log-probabilities of all actions, in float32."""
    return torch.log_softmax(allowed(logits, masks), dim=-1, dtype=torch.float32)


def entropy(log_probs: Tensor) -> Tensor:
    """The entropy of each policy; forbidden actions add nothing."""
    weighed: Tensor = torch.linalg.vecdot(log_probs.exp(), log_probs)
    return -weighed


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


def make_student(network: nn.Module, settings: TrainSettings) -> Student:
    """What collecting and learning call."""
    called: Any = compiled(network) if settings.compile else network
    if not settings.mixed_precision:
        return called  # type: ignore[no-any-return]
    try_bfloat16(settings.device)

    def student(
        observations: Tensor, memory: Memory | None, begins: Tensor | None
    ) -> tuple[Tensor, Tensor, Memory | None]:
        with torch.autocast(settings.device, dtype=torch.bfloat16):
            logits, values, memory = called(observations, memory, begins)
        kept = None if memory is None else (memory[0].float(), memory[1].float())
        return logits.float(), values.float(), kept

    return student


def compiled(network: nn.Module) -> Any:
    if not any(map(shutil.which, ("g++", "c++", "clang++"))):
        raise MissingError(
            "compile=true needs a C++ compiler, and none is found: install g++, or leave it out"
        )
    return torch.compile(network)


def try_bfloat16(device: str) -> None:
    """Multiply once, because some machines promise matrix instructions that they do not let anybody use."""
    ones = torch.ones(64, 64, dtype=torch.bfloat16, device=device)
    try:
        ones @ ones
    except RuntimeError as error:
        raise SetupError(
            f"mixed_precision=true: this machine cannot multiply bfloat16 matrices ({error}): "
            "set the environment variable ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16, or leave it out"
        ) from None
