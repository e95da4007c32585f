"""Reading tokens: a table of embeddings, and the sum of what it says of every token of a row."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

UNUSED = 0xFF
"""The location of a token that says nothing."""
BITS = 16
"""Of a token's place in the table; what sorts them counts on no more."""
SPREAD = 0x9E3779B1
"""An odd number whose multiples spread over the upper bits."""


class TokenBag(nn.Module):
    """Embeds each token (location, feature, value) by a table and adds up the embeddings of a row.

    A hash of its three bytes says where in the table a token stands. The sum is what the first layer of a
    network over a one-hot picture of all tokens would give, at the cost of the tokens that are there.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(1 << BITS, width))

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens uint8 [rows, tokens, 3] to [rows, width]."""
        used = tokens[..., 0] != UNUSED
        places = used.flatten().nonzero()[:, 0]
        location, feature, value = tokens.reshape(-1, 3).index_select(0, places).long().unbind(-1)
        hashed = ((location << 16 | feature << 8 | value) * SPREAD & 0xFFFFFFFF) >> (32 - BITS)
        return torch.relu(SumOfEntries.apply(self.table, hashed, used.sum(-1)))  # type: ignore[no-untyped-call]


class SumOfEntries(torch.autograd.Function):
    """For each row the sum of the table's entries at its keys; `counts` says how many keys each row has.

    The gradient is the same sum the other way round: for each key, over the rows that have it. Torch's own
    sorts 64-bit keys by comparison and adds row by row, which took half of all training on tokens.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, keys: Tensor, counts: Tensor) -> Tensor:
        ctx.save_for_backward(keys, counts)
        ctx.shape = table.shape
        return embedding_bag(keys, table, counts.cumsum(0) - counts, mode="sum")

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        keys, counts = ctx.saved_tensors
        rows = torch.arange(len(counts), device=keys.device).repeat_interleave(counts)
        order = sorting(keys)
        present, times = keys.index_select(0, order).unique_consecutive(return_counts=True)
        rows = rows.index_select(0, order)
        sums = embedding_bag(rows, gradients[0].contiguous(), times.cumsum(0) - times, mode="sum")
        return sums.new_zeros(ctx.shape).index_copy_(0, present, sums), None, None


def sorting(keys: Tensor) -> Tensor:
    """The order that sorts keys; NumPy sorts 16-bit numbers by their digits."""
    if keys.is_cuda:
        return keys.argsort(stable=True)
    return torch.from_numpy(keys.numpy().astype(np.uint16).argsort(kind="stable"))
