"""Passes through networks of plain layers, natively: forward, and back from what an objective's gradient is.

Torch shares every operation out among its threads, which meet after each of them. Here a thread takes its
rows through all layers, and they meet once: see `native/learn/network.h`. Torch's own operations are what it
must agree with, but for rounding; autograd sees one operation.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import profiler

from hotloop.train.kernels import load

# Of a network: all of it is packed anew for every minibatch, and should stay in a core's own cache.
MOST_WEIGHTS = 1 << 20


class Passes:
    """Natively what `layers`, each with a ReLU behind it, and `heads` beside one another do with rows."""

    def __init__(self, layers: Sequence[nn.Linear], heads: Sequence[nn.Linear], run: Any) -> None:
        self._parts = (*layers, *heads)
        self._heads = tuple(head.out_features for head in heads)
        widths = [self._parts[0].in_features, *(layer.out_features for layer in layers)]
        self._run, self._network = run, load().Network(widths, list(self._heads))
        self._weights = [(part.weight.detach().numpy(), part.bias.detach().numpy()) for part in self._parts]
        self._packed: tuple[int, ...] = ()
        """The versions of the weights that were taken last."""
        self._pass = 0
        sizes = [each.numel() for each in self.parameters]
        together = torch.split(torch.empty(sum(sizes)), sizes)
        self._gradients = [part.view_as(each) for part, each in zip(together, self.parameters, strict=True)]
        """Room for those of all weights and biases, one after the other, so that ranks send them as one."""

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """A copy of a network has weights of its own, and its passes are torch's until kernels adopt it."""
        return type(None), ()

    def __call__(self, seen: Tensor, index: Tensor | None = None) -> tuple[Tensor, ...]:
        """What every head says of rows [samples, inputs], or of those that `index` names."""
        if not torch.is_grad_enabled():
            return self.forward(seen.detach(), index, keep=False)
        told: tuple[Tensor, ...] = Pass.apply(self, seen, index, *self.parameters)  # type: ignore[no-untyped-call]
        return told

    @property
    def parameters(self) -> list[Tensor]:
        """Weights and bias of every layer and head."""
        return [each for part in self._parts for each in (part.weight, part.bias)]

    @staticmethod
    def fits(seen: Tensor) -> bool:
        return seen.dtype == torch.float32 and seen.ndim == 2 and seen.is_contiguous()

    def forward(self, seen: Tensor, index: Tensor | None, *, keep: bool) -> tuple[Tensor, ...]:
        """`keep` keeps what the way back needs."""
        versions = tuple(each._version for each in self.parameters)  # noqa: SLF001 - torch says it nowhere else
        if versions != self._packed:
            self._network.pack(self._run, self._weights)
            self._packed = versions
        rows = len(seen) if index is None else len(index)
        heads = tuple(torch.empty(rows, width) for width in self._heads)
        with traced("native forward"):
            self._network.forward(
                self._run, seen.numpy(), numbers(index), [each.numpy() for each in heads], keep
            )
        self._pass += keep
        return heads

    @property
    def last(self) -> int:
        """The number of the last pass that can be gone back on."""
        return self._pass

    def backward(
        self,
        seen: Tensor,
        index: Tensor | None,
        by_heads: Sequence[Tensor],
        by_seen: Tensor | None,
        found: Sequence[Tensor],
    ) -> None:
        """Find the gradients of all weights and biases, in their order; of no rows they are zeros."""
        if not len(seen if index is None else index):
            for gradient in found:
                gradient.zero_()
            return
        pairs = [
            (weights.numpy(), bias.numpy()) for weights, bias in zip(found[::2], found[1::2], strict=True)
        ]
        by = [each.contiguous().numpy() for each in by_heads]
        with traced("native backward"):
            self._network.backward(self._run, seen.numpy(), numbers(index), by, pairs, numbers(by_seen))

    def new_gradients(self) -> list[Tensor]:
        return [torch.empty_like(each) for each in self.parameters]

    def add_gradients(self, seen: Tensor, index: Tensor | None, by_heads: Sequence[Tensor]) -> None:
        """Add to the gradient of every weight, as autograd would; the first ones lie in room of ours."""
        first = all(weight.grad is None for weight in self.parameters)
        found = self._gradients if first else self.new_gradients()
        self.backward(seen, index, by_heads, None, found)
        for weight, gradient in zip(self.parameters, found, strict=True):
            weight.grad = gradient if weight.grad is None else weight.grad + gradient


class Pass(torch.autograd.Function):
    """One pass; only the last one can be gone back on."""

    @staticmethod
    def forward(
        ctx: Any, passes: Passes, seen: Tensor, index: Tensor | None, *_: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.passes, ctx.index, ctx.by_seen = passes, index, seen.requires_grad
        ctx.save_for_backward(seen)
        told = passes.forward(seen.detach(), index, keep=True)
        ctx.number = passes.last
        return told

    @staticmethod
    def backward(ctx: Any, *by_heads: Tensor) -> tuple[Any, ...]:
        passes: Passes = ctx.passes
        if ctx.number != passes.last:
            raise RuntimeError("another pass has gone through the network since: this one is forgotten")
        [seen] = ctx.saved_tensors
        by_seen = torch.empty_like(seen) if ctx.by_seen else None
        found = passes.new_gradients()
        passes.backward(seen.detach(), ctx.index, by_heads, by_seen, found)
        return None, by_seen, None, *found


def traced(name: str) -> AbstractContextManager[Any]:
    """A row of torch's profiler, where it is on; off, asking for one takes longer than a pass may."""
    on = profiler._is_profiler_enabled  # noqa: SLF001 - nothing else says it
    return profiler.record_function(name) if on else nullcontext()


def numbers(tensor: Tensor | None) -> Any:
    return None if tensor is None else tensor.numpy()


def can_pass(layers: Sequence[nn.Module], heads: Sequence[nn.Module]) -> bool:
    """Whether these are plain layers on the host, of 32 bits, and not too many weights."""
    every = (*layers, *heads)
    if not all(isinstance(each, nn.Linear) and each.bias is not None for each in every):
        return False
    weights = [weight for each in every for weight in each.parameters()]
    return (
        all(weight.dtype == torch.float32 and weight.device.type == "cpu" for weight in weights)
        and sum(weight.numel() for weight in weights) <= MOST_WEIGHTS
    )
