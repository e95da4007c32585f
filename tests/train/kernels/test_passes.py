"""Native passes through a network say what torch's do, but for rounding, whoever does them."""

import copy
import math
import pickle
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hotloop
from hotloop.core.world import Acts
from hotloop.train.arithmetic import NativeKernels, NativePasses, Objective, torch_threads
from hotloop.train.networks import ActorCritic
from hotloop.train.ranks import in_one_piece
from hotloop.train.settings import TrainSettings
from hotloop.train.trainer import Trainer

_kernels = pytest.importorskip("hotloop.train._kernels")

SHAPES = [
    (260, (128, 128), 69, 200),
    (4, (64, 64), 2, 64),
    (7, (), 3, 5),
    (33, (17, 100, 3), 1, 131),
    (16, (16,), 16, 8),
    (1, (1,), 1, 1),
]
"""What is seen, hidden layers, actions, rows."""


def made(width: int, hidden: Sequence[int], actions: int) -> tuple[list[nn.Linear], list[nn.Linear]]:
    torch.manual_seed(3)
    widths = (width, *hidden)
    layers = [nn.Linear(*between) for between in zip(widths, hidden, strict=False)]
    return layers, [nn.Linear(widths[-1], actions), nn.Linear(widths[-1], 1)]


def by_torch(layers: Sequence[nn.Linear], heads: Sequence[nn.Linear], seen: Tensor) -> list[Tensor]:
    for layer in layers:
        seen = torch.relu(layer(seen))
    return [head(seen) for head in heads]


def gradients(outputs: Sequence[Tensor], by: Sequence[Tensor], of: Sequence[Tensor]) -> list[Tensor]:
    torch.autograd.backward(tuple(outputs), tuple(by))
    found = [each.grad for each in of if each.grad is not None]
    for each in of:
        each.grad = None
    assert len(found) == len(of)
    return found


def assert_alike(found: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5 * (float(other.detach().abs().max()) + 1))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", _kernels.NAMES)
@pytest.mark.parametrize(("width", "hidden", "actions", "rows"), SHAPES)
def test_forward_and_back_are_torchs(
    name: str, threads: int, width: int, hidden: tuple[int, ...], actions: int, rows: int
) -> None:
    layers, heads = made(width, hidden, actions)
    passes = NativePasses(layers, heads, _kernels.make(name, threads, torch_threads()))
    samples, index = torch.randn(2 * rows, width), torch.randperm(2 * rows)[:rows]
    by = (torch.randn(rows, actions), torch.randn(rows, 1))

    told, expected = passes(samples, index), by_torch(layers, heads, samples[index])
    assert_alike(told, expected)
    found = gradients(told, by, passes.parameters)
    assert_alike(found, gradients(expected, by, passes.parameters))
    with torch.no_grad():
        assert_alike(passes(samples[index]), expected)

    asks = samples[:rows].clone().requires_grad_()
    [first] = gradients(passes(asks), by, [asks])
    [second] = gradients(by_torch(layers, heads, asks), by, [asks])
    assert_alike([first], [second])


def test_no_rows_have_gradients_of_zeros(small: NativePasses) -> None:
    for index in (None, torch.zeros(0, dtype=torch.int64)):
        seen = torch.zeros(0 if index is None else 5, small.parameters[0].shape[1])
        outputs = small(seen, index)
        torch.autograd.backward(sum(each.sum() for each in outputs))
        assert all(each.grad is not None and not each.grad.any() for each in small.parameters)


def test_the_same_again_is_the_same_to_the_bit() -> None:
    layers, heads = made(20, (30,), 4)
    passes = NativePasses(layers, heads, _kernels.make(_kernels.NAMES[0], 3, torch_threads()))
    seen, by = torch.randn(100, 20), (torch.randn(100, 4), torch.randn(100, 1))
    first, second = (gradients(passes(seen), by, passes.parameters) for _ in range(2))
    assert all(map(torch.equal, first, second))


@pytest.fixture
def small() -> NativePasses:
    return NativePasses(*made(6, (8,), 3), _kernels.make(_kernels.NAMES[0], 1, torch_threads()))


def test_weights_that_were_moved_are_taken_anew(small: NativePasses) -> None:
    seen = torch.randn(5, 6)
    with torch.no_grad():
        before = small(seen)[0]
        small.parameters[0].mul_(2)
        assert not torch.equal(small(seen)[0], before)


def test_only_the_last_pass_can_be_gone_back_on(small: NativePasses) -> None:
    first, _ = small(torch.randn(5, 6)), small(torch.randn(5, 6))
    with pytest.raises(RuntimeError, match="another pass has gone through the network since"):
        torch.autograd.backward(first, tuple(map(torch.ones_like, first)))


def test_a_look_between_forward_and_back_changes_nothing(small: NativePasses) -> None:
    seen, by = torch.randn(40, 6), (torch.randn(40, 3), torch.randn(40, 1))
    undisturbed = gradients(small(seen), by, small.parameters)
    told = small(seen)
    with torch.no_grad():
        small(torch.randn(100, 6))
    assert all(map(torch.equal, gradients(told, by, small.parameters), undisturbed))


def test_what_is_no_number_stays_so(small: NativePasses) -> None:
    seen = torch.zeros(9, 6)
    seen[4, 2] = math.nan
    with torch.no_grad():
        logits = small(seen)[0]
    assert logits.isnan().any(1).tolist() == [row == 4 for row in range(9)]


@pytest.mark.parametrize("index", [[5], [-1]])
def test_rows_there_are_not_are_refused(small: NativePasses, index: list[int]) -> None:
    with pytest.raises(ValueError, match="index of another shape"):
        small(torch.zeros(5, 6), torch.tensor(index))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_a_copy_of_a_network_has_torchs_passes(copied: Any) -> None:
    network = ActorCritic(nn.Identity(), 6, 3, hidden=(8,), lstm=0)
    kernels().adopt(network, TrainSettings())
    assert network.passes is not None
    assert copied(network).passes is None


def kernels() -> NativeKernels:
    return NativeKernels(_kernels.make(_kernels.NAMES[0], 1, torch_threads()))


@pytest.mark.parametrize(
    ("settings", "lstm"),
    [({"compile": True}, 0), ({"mixed_precision": True}, 0), ({}, 8), ({"hidden": (2_000, 2_000)}, 0)],
)
def test_what_is_not_plain_is_left_to_torch(settings: dict[str, Any], lstm: int) -> None:
    chosen = TrainSettings(**{"hidden": (8,), **settings})
    network = ActorCritic(nn.Identity(), 6, 3, hidden=chosen.hidden, lstm=lstm)
    kernels().adopt(network, chosen)
    assert network.passes is None


def test_a_spread_stands_behind_the_means() -> None:
    network = ActorCritic(
        nn.Identity(), 6, 4, hidden=(8,), lstm=0, acts=Acts(low=(-1.0, -1.0), high=(1.0, 1.0))
    )
    seen = torch.randn(5, 6)
    expected = network(seen)
    kernels().adopt(network, TrainSettings())
    assert network.passes is not None
    assert_alike(network(seen)[:2], expected[:2])


@pytest.mark.parametrize("target", ["prospector/short", "grid/toy", "farm/dev"])
def test_a_training_takes_the_same_way(target: str) -> None:
    """Whatever stands before the trunk: nothing, tokens, an image."""
    ways = []
    for passed in (False, True):
        batch = hotloop.make(target, num_envs=4, seed=5)
        rows = 4 * batch.spec.agents
        settings = TrainSettings(
            num_steps=8, minibatch_size=4 * rows, hidden=(32,), embedding=8, torch_threads=1
        )
        trainer = Trainer(batch, settings)
        assert trainer.kernels.name.startswith("native")
        assert trainer.network.passes is not None
        if not passed:
            trainer.network.passes = None
        ways.append(trainer.update().losses)
    assert ways[0].keys() == ways[1].keys()
    for name, loss in ways[0].items():
        assert ways[1][name] == pytest.approx(loss, rel=1e-3, abs=1e-4), name


def test_a_small_step_of_an_objective_adds_to_gradients_there_are(small: NativePasses) -> None:
    seen, index = torch.randn(5, 6), torch.arange(5)
    by = (torch.randn(5, 3), torch.randn(5, 1))
    for number in range(2):
        small.forward(seen, index, keep=True)
        Objective(terms={}, backward=lambda: small.add_gradients(seen, index, by)).backward()
        _, together = in_one_piece([each.grad for each in small.parameters if each.grad is not None])
        assert together == (number == 0), "the first are sent to other ranks as they lie"
    twice = [each.grad for each in small.parameters]
    for each in small.parameters:
        each.grad = None
    once = gradients(small(seen), by, small.parameters)
    assert_alike([each for each in twice if each is not None], [2 * each for each in once])
