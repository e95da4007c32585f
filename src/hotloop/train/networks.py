"""The networks: an encoder by what a world's observations are, a trunk, and heads for policy and value."""

import shutil
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, linear, pad

from hotloop.core.errors import InputError, MissingError, SetupError
from hotloop.core.settings import names_callable
from hotloop.core.world import Acts, Kind, Part
from hotloop.envs import callables
from hotloop.envs.foreign.inside import BROKEN, raised
from hotloop.envs.spec import BatchSpec
from hotloop.train.device.kernels import Recurrence, TokenSum, available
from hotloop.train.option_network import OptionsNetwork
from hotloop.train.settings import TrainSettings

if TYPE_CHECKING:
    from hotloop.train.arithmetic import NativePasses

Memory = tuple[Tensor, Tensor]  # Hidden and cell state of an LSTM, each [rows, width]


# How large the weights of each part begin; the policy's so small that a fresh one is nearly uniform.
GAINS = {
    "encoder": 2**0.5,
    "trunk": 2**0.5,
    "options": 1.0,
    "view": 1.0,
    "lstm": 1.0,
    "policy": 0.01,
    "value": 1.0,
}


TABLE_DEVIATION = 0.1  # Of the embeddings of tokens: some hundred of them are added up


UNUSED = 0xFF  # The location of a token that says nothing


BITS = 16  # Of a token's place in the table; what sorts them counts on no more


# Of the matrices that a GPU multiplies fast, in columns of bfloat16: others took twice as long.
WIDTH_UNIT = 8


SPREAD = 0x9E3779B1  # An odd number whose multiples spread over the upper bits


class ActorCritic(nn.Module):
    """Encoder, trunk, an LSTM where one is asked for, and a head each for policy and value."""

    def __init__(
        self,
        encoder: nn.Module,
        width: int,
        num_actions: int,
        *,
        hidden: tuple[int, ...],
        lstm: int,
        acts: Acts | None = None,
    ):
        super().__init__()
        self.encoder, self.width = encoder, width
        widths = (width, *hidden)
        layers = [
            layer for between in pairwise(widths) for layer in (nn.Linear(*between), nn.ReLU(inplace=True))
        ]
        self.trunk = nn.Sequential(*layers)
        self.lstm = nn.LSTMCell(widths[-1], lstm) if lstm else None
        self.policy: nn.Module = (
            GaussianHead(lstm or widths[-1], acts.width)
            if acts is not None and acts.low
            else nn.Linear(lstm or widths[-1], num_actions)
        )
        self.value = nn.Linear(lstm or widths[-1], 1)
        self.passes: NativePasses | None = None
        """The native passes through trunk and heads; None for torch's."""

    def forward(
        self, observations: Tensor, memory: Memory | None = None, begins: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Memory | None]:
        """Logits and values of observations [rows, ...], or with a memory [steps, rows, ...].

        `begins` [steps, rows] says where an episode begins, and with it an empty memory.
        """
        if self.passes is not None and self.passes.fits(seen := self.encoder(observations)):
            outputs, values = self.passes(seen)
            if isinstance(self.policy, GaussianHead):
                outputs = self.policy.spread_out(outputs)
            return outputs, values[..., 0], None
        if self.lstm is None:
            return *self.answer(self.look(observations)), None
        looked = self.look(observations.flatten(0, 1))
        features = looked.reshape(*observations.shape[:2], -1)
        outputs, memory = self.remember(features, memory, begins)
        return *self.answer(outputs), memory

    def look(self, observations: Tensor) -> Tensor:
        """Encoder and trunk; rows may be wider than what is seen, by columns that are 0."""
        seen = self.encoder(observations)
        spare = seen.shape[-1] - self.width
        if not spare:
            features: Tensor = self.trunk(seen)
            return features
        first: Any
        first, *others = self.trunk
        features = linear(seen, pad(first.weight, (0, spare)), first.bias)
        for layer in others:
            features = layer(features)
        return features

    def answer(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and values; on a GPU by one product, as wide as its matrix units like it."""
        if not features.is_cuda or not isinstance(self.policy, nn.Linear):
            return self.policy(features), self.value(features)[..., 0]
        weights, biases = self.policy.weight, self.policy.bias
        count, width = weights.shape
        spare = -(count + 1) % WIDTH_UNIT
        found = linear(
            features,
            torch.cat((weights, self.value.weight, weights.new_zeros(spare, width))),
            torch.cat((biases, self.value.bias, biases.new_zeros(spare))),
        )
        return found[..., :count], found[..., count]

    @property
    def learns_at_once(self) -> bool:
        """Whether all of its gradients are found natively, by one pass over rows as they lie."""
        return self.passes is not None and isinstance(self.encoder, nn.Identity)

    @property
    def plain(self) -> tuple[list[Any], list[Any]]:
        """The trunk's layers, and the heads beside one another, as they could be passed through at once."""
        policy = self.policy.mean if isinstance(self.policy, GaussianHead) else self.policy
        return list(self.trunk)[::2], [policy, self.value]

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def remember(self, features: Tensor, memory: Memory, begins: Tensor) -> tuple[Tensor, Memory]:
        """The LSTM over features [steps, rows, ...]: its outputs, and the memory after the last step."""
        assert self.lstm is not None
        hidden, cell = memory
        if available(features, self.lstm.hidden_size):
            biases = self.lstm.bias_ih + self.lstm.bias_hh
            gates = linear(features, self.lstm.weight_ih, biases)
            found = Recurrence.apply(gates, self.lstm.weight_hh, hidden, cell, begins)  # type: ignore[no-untyped-call]
            return found[0], (found[1], found[2])
        keeps = 1 - begins.to(features.dtype)[..., None]
        outputs = []
        for feature, keep in zip(features, keeps, strict=True):
            hidden, cell = self.lstm(feature, (hidden * keep, cell * keep))
            outputs.append(hidden)
        return torch.stack(outputs), (hidden, cell)

    @property
    def has_fixed_shapes(self) -> bool:
        """Whether a pass can be recorded: nothing in it depends on what is seen, but for what is computed."""
        tables = [each.table for each in self.modules() if isinstance(each, TokenBag)]
        return all(available(table, table.shape[1]) for table in tables)

    def first_memory(self, rows: int, device: torch.device) -> Memory | None:
        """The memory of rows that have seen nothing yet."""
        if self.lstm is None:
            return None
        empty = torch.zeros(rows, self.lstm.hidden_size, device=device)
        return empty, empty.clone()


class ByType(nn.Module):
    """One network a type; the last column of a row says which type it is of.

    A type without agents runs too, for no rows: so every weight has a gradient, of zeros.
    """

    has_fixed_shapes = False  # How many rows are of a type decides the sizes of a pass

    def __init__(self, networks: Sequence["ActorCritic | OptionsNetwork"], num_actions: int) -> None:
        super().__init__()
        self.each = nn.ModuleList(networks)
        self.num_actions = num_actions

    def forward(
        self, observations: Tensor, memory: None = None, begins: Tensor | None = None
    ) -> tuple[Tensor, Tensor, None]:
        """Logits and values of observations [rows, row and type]."""
        types = observations[:, -1]
        logits = observations.new_zeros(len(observations), self.num_actions)
        values = observations.new_zeros(len(observations))
        for number, network in enumerate(self.each):
            rows = (types == number).nonzero()[:, 0]
            said, worth, _ = network(observations.index_select(0, rows)[:, :-1])
            logits = logits.index_copy(0, rows, said.to(logits.dtype))
            values = values.index_copy(0, rows, worth.to(values.dtype))
        return logits, values, None

    def first_memory(self, rows: int, device: torch.device) -> None:
        """It has none."""


class GaussianHead(nn.Module):
    """Means by one layer, and the logs of spreads that no observation changes and that begin at 0."""

    def __init__(self, width: int, numbers: int) -> None:
        super().__init__()
        self.mean = nn.Linear(width, numbers)
        self.spread = nn.Parameter(torch.zeros(numbers))

    def forward(self, features: Tensor) -> Tensor:
        """Features [..., width] to means and logs of spreads [..., 2 * numbers]."""
        return self.spread_out(self.mean(features))

    def spread_out(self, means: Tensor) -> Tensor:
        """Means, and behind them the logs of spreads."""
        return torch.cat((means, self.spread.to(means.dtype).expand_as(means)), -1)


class UserNetwork(nn.Module):
    """User code's network, from observations [rows, ...] to outputs [rows, outputs] and values [rows]."""

    lstm = None
    has_fixed_shapes = False

    def __init__(self, name: str, shape: tuple[int, ...], spec: BatchSpec) -> None:
        super().__init__()
        self._name, self._outputs, self._acts = name, spec.num_actions, spec.layout.acts
        found = callables.find(name)
        try:
            made = found(shape, spec.num_actions)
        except BROKEN as error:
            raise raised(name, error) from error
        if not isinstance(made, nn.Module):
            raise InputError(f"{name} made a {type(made).__name__}: expected a torch.nn.Module")
        self.network = made
        self.try_out(torch.zeros(2, *shape))

    def forward(
        self, observations: Tensor, memory: Memory | None = None, begins: Tensor | None = None
    ) -> tuple[Tensor, Tensor, None]:
        outputs, values = self.network(observations)
        return outputs, values.reshape(outputs.shape[:-1]), None

    @torch.no_grad()
    def try_out(self, rows: Tensor) -> None:
        """Refuse a network whose answer is of another shape, with what it gave and what is expected."""
        try:
            given = self.network(rows)
        except BROKEN as error:
            raise raised(self._name, error) from error
        wanted = f"outputs [{len(rows)}, {self._outputs}] and values [{len(rows)}]"
        for_what = f"expected {wanted} for observations {list(rows.shape)}{meaning(self._acts)}"
        if not isinstance(given, tuple) or len(given) != 2 or not all(map(torch.is_tensor, given)):
            raise InputError(f"{self._name} gave {describe_output(given)}: {for_what}")
        outputs, values = given
        if outputs.shape != (len(rows), self._outputs) or values.shape not in ((len(rows),), (len(rows), 1)):
            gave = f"outputs {list(outputs.shape)} and values {list(values.shape)}"
            raise InputError(f"{self._name} gave {gave}: {for_what}")

    def first_memory(self, rows: int, device: torch.device) -> None:
        """None: it remembers nothing."""


def meaning(acts: Acts | None) -> str:
    """What a policy's outputs are, where they are not one for each action."""
    if acts is None:
        return ""
    if acts.choices:
        return f"; the outputs are those of {len(acts.choices)} choices, one behind the other: {acts.choices}"
    return f"; the outputs are {acts.width} means, then {acts.width} logs of spreads"


def describe_output(given: object) -> str:
    if torch.is_tensor(given):
        return f"a tensor {list(given.shape)}"
    return f"a tuple of {len(given)}" if isinstance(given, tuple) else f"a {type(given).__name__}"


Network = ActorCritic | OptionsNetwork | UserNetwork | ByType


class ObjectBag(nn.Module):
    """Embeds each object [features] by one layer, and takes the mean over those that are there."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(features, width)

    def forward(self, objects: Tensor) -> Tensor:
        """Objects [rows, count, features], the last feature 1 where there is one, to [rows, width]."""
        there = objects[..., -1:]
        embedded = torch.relu(self.layer(objects)) * there
        return embedded.sum(-2) / there.sum(-2).clamp(min=1)


class ImageReader(nn.Module):
    """Two layers of convolutions over an image, and one over all that they found."""

    def __init__(self, shape: tuple[int, ...], width: int) -> None:
        super().__init__()
        channels, height, across = shape
        self.first = nn.Conv2d(channels, 16, 3, padding=1)
        self.second = nn.Conv2d(16, 16, 3, stride=2, padding=1)
        self.layer = nn.Linear(16 * ((height + 1) // 2) * ((across + 1) // 2), width)

    def forward(self, image: Tensor) -> Tensor:
        """Images [rows, channels, height, width] to [rows, width]."""
        found = torch.relu(self.second(torch.relu(self.first(image))))
        return torch.relu(self.layer(found.flatten(1)))


class PartsReader(nn.Module):
    """Reads each part of a row by an encoder of its kind, and puts the answers beside one another."""

    def __init__(self, parts: Sequence[Part], settings: TrainSettings) -> None:
        super().__init__()
        self.parts = tuple(parts)
        made = [encoder_of(part.kind, part.shape, settings) for part in parts]
        self.encoders = nn.ModuleList(encoder for encoder, _ in made)
        self.width = sum(width for _, width in made)

    def forward(self, rows: Tensor) -> Tensor:
        """Rows [rows, row] to [rows, width]."""
        pieces = torch.split(rows, [part.size for part in self.parts], dim=-1)
        answers = [
            encoder(piece.reshape(*piece.shape[:-1], *part.shape))
            for encoder, piece, part in zip(self.encoders, pieces, self.parts, strict=True)
        ]
        return torch.cat(answers, dim=-1)


def encoder_of(kind: Kind, shape: tuple[int, ...], settings: TrainSettings) -> tuple[nn.Module, int]:
    """Who reads what one agent sees, by its kind, and how wide the answer is."""
    width = settings.embedding
    match kind:
        case "tokens":
            return TokenBag(width), width
        case "objects" | "options" | "log":
            return ObjectBag(shape[-1], width), width
        case "image":
            return ImageReader(shape, width), width
        case "vector":
            flat = nn.Flatten() if len(shape) > 1 else nn.Identity()
            return flat, int(torch.Size(shape).numel())


def default_network(spec: BatchSpec, shape: tuple[int, ...], settings: TrainSettings) -> Network:
    """The network for a world's observations, its weights decided by the seed alone."""
    generator = torch.Generator().manual_seed(settings.seed)
    count = len(spec.layout.types) if is_by_type(spec, settings) else 1
    with torch.random.fork_rng(devices=[]):  # torch draws weights that are thrown away
        if settings.network:
            if not names_callable(settings.network):
                raise InputError(f"train.network={settings.network} does not fit: write my_net.py:Net")
            if settings.lstm:
                raise InputError(
                    "train.lstm is for our own network: leave it out, or leave out train.network"
                )
            torch.manual_seed(settings.seed)  # user code draws its weights itself
            return UserNetwork(settings.network, shape, spec)
        networks = [network_for(spec, shape, settings) for _ in range(count)]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # several round otherwise, and the seed must decide alone
    try:
        for network in networks:
            initialise(network, generator)
    finally:
        torch.set_num_threads(threads)
    return ByType(networks, spec.num_actions) if is_by_type(spec, settings) else networks[0]


def is_by_type(spec: BatchSpec, settings: TrainSettings) -> bool:
    """Whether agents of each type have a network of their own."""
    if not spec.layout.types:
        return False
    if settings.networks == "auto":
        return settings.algorithm != "ppo"
    if settings.networks == "type" and settings.lstm:
        raise InputError(f"lstm={settings.lstm}: networks by type have no memory; use networks=one")
    return settings.networks == "type"


def network_for(
    spec: BatchSpec, shape: tuple[int, ...], settings: TrainSettings
) -> ActorCritic | OptionsNetwork:
    """By options where they point at objects, else by a head over all actions."""
    parts = spec.layout.parts
    if any(part.points_at for part in parts):
        return OptionsNetwork(parts, spec.num_actions, settings)
    encoder: nn.Module
    if parts:
        encoder = reader = PartsReader(parts, settings)
        width = reader.width
    else:
        encoder, width = encoder_of(spec.layout.observation.kind, shape, settings)
    hidden, lstm, acts = settings.hidden, settings.lstm, spec.layout.acts
    return ActorCritic(encoder, width, spec.num_actions, hidden=hidden, lstm=lstm, acts=acts)


@torch.no_grad()
def initialise(network: nn.Module, generator: torch.Generator) -> None:
    """Orthogonal weights and no biases; the policy's part of the heads begins small."""
    for name, weights in network.named_parameters():
        if weights.ndim < 2:
            weights.zero_()
        elif name.endswith(".table"):
            weights.normal_(0, TABLE_DEVIATION, generator=generator)
        else:
            nn.init.orthogonal_(weights, GAINS[name.partition(".")[0]], generator=generator)


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
        if available(tokens, self.table.shape[1]):
            return torch.relu(TokenSum.apply(self.table, tokens))  # type: ignore[no-untyped-call]
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
        # NumPy sorts 16-bit numbers by their digits.
        order = (
            keys.argsort(stable=True)
            if keys.is_cuda
            else torch.from_numpy(keys.numpy().astype(np.uint16).argsort(kind="stable"))
        )
        present, times = keys.index_select(0, order).unique_consecutive(return_counts=True)
        rows = rows.index_select(0, order)
        sums = embedding_bag(rows, gradients[0].contiguous(), times.cumsum(0) - times, mode="sum")
        return sums.new_zeros(ctx.shape).index_copy_(0, present, sums), None, None


Student = Callable[[Tensor, Memory | None, Tensor | None], tuple[Tensor, Tensor, Memory | None]]


def forward_policy(
    student: Student, observations: Tensor, memory: Memory | None, begins: Tensor
) -> tuple[Tensor, Tensor, Memory | None]:
    """Return logits and values of rows for one step, and the memory after it."""
    if memory is None:
        return student(observations, None, None)
    logits, values, after = student(observations[None], memory, begins[None])
    return logits[0], values[0], after


def make_student(network: nn.Module, settings: TrainSettings) -> Student:
    """Return what collecting and learning call: a network compiled, in mixed precision, or as it is."""
    if settings.compile and not any(map(shutil.which, ("g++", "c++", "clang++"))):
        raise MissingError(
            "compile=true needs a C++ compiler, and none is found: install g++, or leave it out"
        )
    called: Any = torch.compile(network) if settings.compile else network
    if not settings.mixed_precision:
        return called  # type: ignore[no-any-return]
    ones = torch.ones(64, 64, dtype=torch.bfloat16, device=settings.device)
    try:
        ones @ ones  # some machines promise matrix instructions that they do not let a program use
    except RuntimeError as error:
        raise SetupError(
            f"mixed_precision=true: this machine cannot multiply bfloat16 matrices ({error}): "
            "set the environment variable ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16, or leave it out"
        ) from None

    def student(
        observations: Tensor, memory: Memory | None, begins: Tensor | None
    ) -> tuple[Tensor, Tensor, Memory | None]:
        with torch.autocast(settings.device, dtype=torch.bfloat16):
            logits, values, memory = called(observations, memory, begins)
        kept = None if memory is None else (memory[0].float(), memory[1].float())
        return logits.float(), values.float(), kept

    return student
