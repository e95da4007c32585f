"""A network of one's own for hotloop's trainer: `hotloop train gym:CartPole-v1 train.network=my_net.py:Net`.

It is made with the shape of what one agent sees, here (4,), and the number of outputs that a policy over the
env's actions has, and gives outputs [rows, outputs] and values [rows].
"""

import math

from torch import Tensor, nn


class Net(nn.Module):
    """Policy and value apart, with tanh between the layers."""

    def __init__(self, shape: tuple[int, ...], outputs: int) -> None:
        super().__init__()
        self.policy = tower(math.prod(shape), outputs)
        self.value = tower(math.prod(shape), 1)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        rows = observations.flatten(1)
        return self.policy(rows), self.value(rows)[:, 0]


def tower(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)
    )
