"""The only door to the trainer's kernels on a GPU, and what networks do with them.

Each does what torch's operations in `train/networks.py` say, but for rounding, in few launches.
"""

import importlib
from functools import cache
from typing import Any

import torch
from torch import Tensor


@cache
def load() -> Any:
    """The compiled module; None where it was not built."""
    try:
        return importlib.import_module("hotloop.train._device_kernels")
    except ImportError:
        return None


def available(tensor: Tensor, width: int) -> bool:
    """Whether there are kernels for a tensor's device, and for rows so wide."""
    return tensor.is_cuda and width % 4 == 0 and load() is not None


def stream() -> int:
    return int(torch.cuda.current_stream().cuda_stream)


def take_rows(array: Tensor, numbers: Tensor) -> Tensor:
    """The rows of an array at some numbers; torch's own gathering takes two to three times as long."""
    row_bytes = array[0].numel() * array.element_size()
    if not available(array, row_bytes // 4) or row_bytes % 16 or not array.is_contiguous():
        return array.index_select(0, numbers)
    taken = array.new_empty(len(numbers), *array.shape[1:])
    load().take_rows(
        array.data_ptr(), numbers.data_ptr(), len(numbers), row_bytes, taken.data_ptr(), stream()
    )
    return taken


class TokenSum(torch.autograd.Function):
    """For each row of tokens [rows, count, 3] the sum of the table's entries at those that say something."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, tokens: Tensor) -> Tensor:
        tokens = tokens.contiguous()
        rows, count, _ = tokens.shape
        sums = torch.empty(rows, table.shape[1], device=table.device)
        place = (tokens.data_ptr(), rows, count)
        load().sum_tokens(*place, table.data_ptr(), table.shape[1], sums.data_ptr(), stream())
        ctx.save_for_backward(tokens)
        ctx.shape = table.shape
        return sums

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        [tokens] = ctx.saved_tensors
        gradient = gradients[0].float().contiguous()
        by_table = torch.zeros(ctx.shape, device=tokens.device)
        place = (tokens.data_ptr(), tokens.shape[0], tokens.shape[1])
        load().add_token_gradient(*place, gradient.data_ptr(), ctx.shape[1], by_table.data_ptr(), stream())
        return by_table, None


class Recurrence(torch.autograd.Function):
    """The part of an LSTM that goes from step to step.

    Takes the inputs' share of the gates [steps, rows, 4 * width], the weights of the hidden state, the memory
    before the first step, and `begins` [steps, rows], which empties it; gives the hidden states [steps, rows,
    width] and the memory after the last step, through which no gradient flows.
    """

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, weights: Tensor, hidden: Tensor, cell: Tensor, begins: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        inputs, begins = inputs.contiguous(), begins.contiguous()
        steps, rows, width = *inputs.shape[:2], inputs.shape[2] // 4
        half = inputs.dtype == torch.bfloat16
        across = weights.to(inputs.dtype).t()
        keeps = ~begins[0][:, None]
        kept_hidden = inputs.new_empty(steps, rows, width)
        kept_cell = torch.empty(steps, rows, width, device=inputs.device)
        kept_hidden[0].copy_(hidden * keeps)
        kept_cell[0].copy_(cell * keeps)
        gates, outputs = torch.empty_like(inputs), torch.empty_like(kept_hidden)
        cells = torch.empty_like(kept_cell)
        for step in range(steps):
            last = step == steps - 1
            load().lstm_step(
                *(rows, width, half, 0 if last else begins[step + 1].data_ptr()),
                *(inputs[step].data_ptr(), (kept_hidden[step] @ across).data_ptr()),
                *(kept_cell[step].data_ptr(), gates[step].data_ptr(), cells[step].data_ptr()),
                outputs[step].data_ptr(),
                *((0, 0) if last else (kept_hidden[step + 1].data_ptr(), kept_cell[step + 1].data_ptr())),
                stream(),
            )
        ctx.save_for_backward(weights, begins, kept_hidden, kept_cell, gates, cells)
        after = outputs[-1].float(), cells[-1].clone()
        ctx.mark_non_differentiable(*after)
        return outputs, *after

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        weights, begins, kept_hidden, kept_cell, gates, cells = ctx.saved_tensors
        steps, rows, width = kept_hidden.shape
        by_outputs = gradients[0].to(gates.dtype).contiguous()
        by_gates, along = torch.empty_like(gates), weights.to(gates.dtype)
        by_cell, by_hidden = torch.empty(2, rows, width, device=gates.device), by_outputs[0]
        for step in reversed(range(steps)):
            last = step == steps - 1
            load().lstm_step_back(
                *(rows, width, gates.dtype == torch.bfloat16),
                0 if last else begins[step + 1].data_ptr(),
                *(gates[step].data_ptr(), cells[step].data_ptr(), kept_cell[step].data_ptr()),
                by_outputs[step].data_ptr(),
                *((0, 0) if last else (by_hidden.data_ptr(), by_cell[(step + 1) % 2].data_ptr())),
                *(by_gates[step].data_ptr(), by_cell[step % 2].data_ptr(), stream()),
            )
            if step:
                by_hidden = by_gates[step] @ along
        by_weights = by_gates.flatten(0, 1).t() @ kept_hidden.flatten(0, 1)
        return by_gates, by_weights.to(weights.dtype), None, None, None
