"""Networks and teachers that are not what the trainer expects, and one that is."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


class Net(nn.Module):
    """What it should be."""

    def __init__(self, shape: tuple[int, ...], outputs: int) -> None:
        super().__init__()
        self.layer = nn.Linear(shape[0], outputs)

    def forward(self, observations: Tensor) -> Any:
        return self.layer(observations), observations.sum(-1)


class Narrow(Net):
    """One output too many."""

    def __init__(self, shape: tuple[int, ...], outputs: int) -> None:
        super().__init__(shape, outputs + 1)


class Alone(Net):
    """No values."""

    def forward(self, observations: Tensor) -> Any:
        return self.layer(observations)


class Broken(Net):
    """Raises."""

    def forward(self, observations: Tensor) -> Any:
        raise KeyError("no such layer")


def number(shape: tuple[int, ...], outputs: int) -> int:
    return outputs


def short(observations: Any) -> Any:
    return np.zeros(1, np.int64)


def wild(observations: Any) -> Any:
    return np.full(len(observations), 7)


def silent(shape: tuple[int, ...], outputs: int) -> nn.Module:
    """A network with a parameter that nothing uses."""
    net = Net(shape, outputs)
    net.spare = nn.Parameter(torch.zeros(3))
    return net
