"""A linear recurrence over time without a loop over time."""

import torch
from torch import Tensor


def scan(values: Tensor, decays: Tensor) -> Tensor:
    """x[t] = values[t] + decays[t] * x[t + 1] along the first axis, by doubling the reach of every x."""
    reach, steps = 1, values.shape[0]
    while reach < steps:
        near, far = values[:-reach], values[reach:]
        values = torch.cat((torch.addcmul(near, decays[:-reach], far), values[-reach:]))
        decays = torch.cat((decays[:-reach] * decays[reach:], decays[-reach:]))
        reach *= 2
    return values
