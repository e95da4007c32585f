"""The networks: an encoder by what a world's observations are, a trunk, and heads for policy and value."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from hotloop.core.world import Array
from hotloop.envs.batch import Spec
from hotloop.train.settings import TrainSettings

Memory = tuple[Tensor, Tensor]
"""Hidden and cell state of an LSTM, each [rows, width]."""
RELU_GAIN = 2**0.5
POLICY_GAIN = 0.01
"""So small that a fresh policy is nearly uniform."""


class TokenBag(nn.Module):
    """Embeds each token (location, feature, value) by a table and adds the embeddings up."""

    ROWS = 1 << 16
    UNUSED = 0xFF
    """The location of a token that says nothing."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(self.ROWS, width, mode="sum", padding_idx=0)
        self.width = width

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens uint8 [rows, tokens, 3] to [rows, width]."""
        words = tokens.int()
        location, feature, value = words.unbind(-1)
        small = torch.where(value < 16, value, 16 + value // 16)
        key = (location * 2_147 + feature * 37 + small * 7_919) % (self.ROWS - 1) + 1
        key = torch.where(location == self.UNUSED, 0, key)
        return torch.relu(self.table(key))


class ActorCritic(nn.Module):
    """Encoder, trunk, an LSTM where one is asked for, and one layer that is both heads."""

    def __init__(
        self, encoder: nn.Module, width: int, num_actions: int, *, hidden: tuple[int, ...], lstm: int
    ):
        super().__init__()
        self.encoder = encoder
        self.num_actions = num_actions
        widths = (width, *hidden)
        layers = [
            layer
            for before, after in zip(widths, widths[1:], strict=False)
            for layer in (nn.Linear(before, after), nn.ReLU())
        ]
        self.trunk = nn.Sequential(*layers)
        self.lstm = nn.LSTMCell(widths[-1], lstm) if lstm else None
        self.heads = nn.Linear(lstm or widths[-1], num_actions + 1)

    def forward(
        self, observations: Tensor, memory: Memory | None = None, begins: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Memory | None]:
        """Logits and values of observations [rows, ...], or with a memory [steps, rows, ...].

        `begins` [steps, rows] says where an episode begins, and with it an empty memory.
        """
        if self.lstm is None:
            logits, values = self.read(self.trunk(self.encoder(observations)))
            return logits, values, None
        features = self.trunk(self.encoder(observations.flatten(0, 1))).unflatten(0, observations.shape[:2])
        hidden, cell = memory  # type: ignore[misc]
        keeps = 1 - begins.to(features.dtype)[..., None]  # type: ignore[union-attr]
        outputs = []
        for feature, keep in zip(features, keeps, strict=True):
            hidden, cell = self.lstm(feature, (hidden * keep, cell * keep))
            outputs.append(hidden)
        logits, values = self.read(torch.stack(outputs))
        return logits, values, (hidden, cell)

    def read(self, features: Tensor) -> tuple[Tensor, Tensor]:
        out = self.heads(features)
        return out[..., : self.num_actions], out[..., self.num_actions]

    def first_memory(self, rows: int, device: torch.device) -> Memory | None:
        """The memory of rows that have seen nothing yet."""
        if self.lstm is None:
            return None
        empty = torch.zeros(rows, self.lstm.hidden_size, device=device)
        return empty, empty.clone()


def seen(spec: Spec) -> Array:
    """What the world says about its observations."""
    arrays = spec.world.layout(spec.parameters).arrays
    return next(array for array in arrays if array.name == "observations")


def vector_encoder(shape: tuple[int, ...], settings: TrainSettings) -> tuple[nn.Module, int]:
    encoder = nn.Flatten() if len(shape) > 1 else nn.Identity()
    return encoder, int(torch.Size(shape).numel())


def token_encoder(shape: tuple[int, ...], settings: TrainSettings) -> tuple[nn.Module, int]:
    return TokenBag(settings.embedding), settings.embedding


ENCODERS: dict[str, Callable[[tuple[int, ...], TrainSettings], tuple[nn.Module, int]]] = {
    "vector": vector_encoder,
    "tokens": token_encoder,
}
"""By the kind an observation declares: one agent's shape to who reads it and how wide its answer is."""


def default_network(spec: Spec, shape: tuple[int, ...], settings: TrainSettings) -> ActorCritic:
    """The network for a world's observations, its weights decided by the seed alone."""
    encoder, width = ENCODERS[seen(spec).kind](shape, settings)
    network = ActorCritic(encoder, width, spec.num_actions, hidden=settings.hidden, lstm=settings.lstm)
    initialise(network, torch.Generator().manual_seed(settings.seed))
    return network


@torch.no_grad()
def initialise(network: ActorCritic, generator: torch.Generator) -> None:
    """Orthogonal weights and no biases; the policy's part of the heads begins small."""
    for name, weights in network.named_parameters():
        if weights.ndim < 2:
            weights.zero_()
        elif name.startswith("encoder"):
            weights.normal_(0, 0.1, generator=generator)
        else:
            orthogonal(weights, 1.0 if name.startswith(("heads", "lstm")) else RELU_GAIN, generator)
    network.heads.weight[: network.num_actions] *= POLICY_GAIN


def orthogonal(weights: Any, gain: float, generator: torch.Generator) -> None:
    nn.init.orthogonal_(weights, gain, generator=generator)
