"""The native kernels do what torch's do, whichever instructions they are compiled for."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from hotloop.train.actions import chosen, log_probabilities
from hotloop.train.arithmetic import Kernels, NativeKernels, Objective, torch_threads
from hotloop.train.normalize import ObservationScale
from hotloop.train.ppo import Samples
from hotloop.train.settings import TrainSettings

_kernels = pytest.importorskip("hotloop.train._kernels")
TORCH = Kernels()
WIDTHS = (1, 2, 4, 7, 16, 17, 33, 69, 1_024)
CPU = torch.device("cpu")


def threaded(name: str, threads: int) -> NativeKernels:
    return NativeKernels(_kernels.make(name, threads, torch_threads()))


@pytest.fixture(params=_kernels.NAMES)
def native(request: pytest.FixtureRequest) -> NativeKernels:
    return threaded(request.param, 1)


def generator(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# --- scaling ----------------------------------------------------------------------------------------------


def test_observations_are_scaled_as_by_torch(native: NativeKernels) -> None:
    scale = ObservationScale((5, 7), CPU, active=True)
    scale.shift.normal_(generator=generator())
    scale.scale.uniform_(0.1, 8, generator=generator())
    raw = torch.randn(33, 5, 7, generator=generator()) * 3
    raw[3, 1, 2], raw[4, 0, 0], raw[5, 4, 6] = math.nan, math.inf, -math.inf
    found, expected = torch.empty_like(raw), torch.empty_like(raw)
    native.scale(scale, raw, found)
    TORCH.scale(scale, raw, expected)
    torch.testing.assert_close(found, expected, equal_nan=True)
    assert found[4, 0, 0] == 10
    assert (found[~found.isnan()].abs() == 10).sum() > 2


def test_what_is_not_scaled_is_copied(native: NativeKernels) -> None:
    scale = ObservationScale((4,), CPU, active=False)
    raw = torch.arange(8, dtype=torch.uint8).reshape(2, 4)
    found = torch.zeros_like(raw)
    native.scale(scale, raw, found)
    assert found.equal(raw)


# --- choosing ---------------------------------------------------------------------------------------------


def choose(kernels: Any, logits: Tensor, masks: Tensor | None, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    rows = len(logits)
    acting, actions = torch.zeros(rows, dtype=torch.int32), torch.zeros(rows, dtype=torch.int64)
    log_probs = torch.zeros(rows)
    kernels.choose(logits, masks, uniforms, acting=acting, actions=actions, log_probs=log_probs)
    assert acting.tolist() == actions.tolist()
    return actions, log_probs


def random_masks(rows: int, width: int) -> Tensor:
    masks = torch.rand(rows, width, generator=generator(3)) < 0.4
    masks[torch.arange(rows), torch.randint(width, (rows,), generator=generator(4))] = True
    return masks


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_actions_are_those_torch_chooses(native: NativeKernels, width: int, masked: bool) -> None:
    rows = 300
    logits = torch.randn(rows, width, generator=generator()) * 4
    masks = random_masks(rows, width) if masked else None
    uniforms = torch.rand(rows, generator=generator(2))
    found, log_probs = choose(native, logits, masks, uniforms)
    expected, _ = choose(TORCH, logits, masks, uniforms)
    all_log_probs = log_probabilities(logits, masks)
    upper = all_log_probs.double().exp().cumsum(-1)
    near_an_edge = ((upper - uniforms[:, None]).abs() < 1e-5).any(-1)
    assert found[~near_an_edge].tolist() == expected[~near_an_edge].tolist()
    assert near_an_edge.sum() < rows / 10
    torch.testing.assert_close(log_probs, chosen(all_log_probs, found), atol=2e-6, rtol=1e-6)
    if masks is not None:
        assert masks[torch.arange(rows), found].all()


@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-24])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_ends_of_the_range_choose_the_first_and_the_last_action_that_is_allowed(
    native: NativeKernels, width: int, uniform: float
) -> None:
    logits = torch.zeros(64, width)
    masks = random_masks(64, width)
    found, _ = choose(native, logits, masks, torch.full((64,), uniform))
    ends = [row.nonzero()[0 if uniform == 0 else -1].item() for row in masks]
    assert found.tolist() == ends


def test_logits_far_apart_leave_one_action(native: NativeKernels) -> None:
    logits = torch.full((8, 69), -1e4)
    logits[:, 40] = 1e4
    found, log_probs = choose(native, logits, None, torch.linspace(0, 0.999, 8))
    assert found.tolist() == [40] * 8
    assert log_probs.tolist() == [0.0] * 8


def test_a_policy_that_is_no_number_still_chooses_an_action_there_is(native: NativeKernels) -> None:
    logits = torch.full((3, 5), math.nan)
    found, log_probs = choose(native, logits, None, torch.rand(3, generator=generator()))
    assert ((found >= 0) & (found < 5)).all()
    assert log_probs.isnan().all()


# --- learning ---------------------------------------------------------------------------------------------


class Given:
    """A student whose answers for each sample are given, and gather gradients."""

    def __init__(self, width: int, shape: tuple[int, ...]) -> None:
        self.logits = (torch.randn(*shape, width, generator=generator(6)) * 2).requires_grad_()
        self.values = torch.randn(*shape, generator=generator(7)).requires_grad_()

    def __call__(self, seen: Tensor, memory: object, begins: object) -> tuple[Tensor, Tensor, None]:
        assert seen.shape[: self.values.ndim] == self.values.shape
        return self.logits * 1, self.values * 1, None


def random_samples(count: int, width: int, *, masked: bool, labelled: bool) -> Samples:
    masks = random_masks(count, width) if masked else None
    allowed = torch.ones(count, width) if masks is None else masks.float()
    actions, labels = allowed.multinomial(2, replacement=True, generator=generator(8)).T.contiguous()
    return Samples(
        observations=torch.randn(count, 3, generator=generator(9)),
        actions=actions,
        log_probs=-math.log(width) + torch.randn(count, generator=generator(10)) * 0.2,
        advantages=torch.randn(count, generator=generator(11)) * 3 + 1,
        returns=torch.randn(count, generator=generator(12)),
        masks=masks,
        labels=labels if labelled else None,
    )


def learned(kernels: Any, student: Given, *arguments: Any) -> tuple[Objective, Tensor, Tensor]:
    student.logits.grad = student.values.grad = None
    objective = kernels.objective(student, *arguments)
    objective.backward()
    assert student.logits.grad is not None
    assert student.values.grad is not None
    return objective, student.logits.grad, student.values.grad


def assert_same_lesson(native: NativeKernels, student: Given, *arguments: Any) -> None:
    found, by_logits, by_values = learned(native, student, *arguments)
    expected, by_logits_in_torch, by_values_in_torch = learned(TORCH, student, *arguments)
    assert found.terms.keys() == expected.terms.keys()
    for name, term in expected.terms.items():
        assert float(found.terms[name]) == pytest.approx(float(term), abs=2e-6, rel=2e-6), name
    torch.testing.assert_close(by_logits, by_logits_in_torch, atol=1e-7, rtol=1e-4)
    torch.testing.assert_close(by_values, by_values_in_torch, atol=1e-7, rtol=1e-5)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_minibatch_teaches_what_it_teaches_torch(native: NativeKernels, width: int) -> None:
    student = Given(width, (40,))
    samples = random_samples(100, width, masked=False, labelled=False)
    indices = torch.randperm(100, generator=generator(13))[:40]
    assert_same_lesson(native, student, samples, indices, TrainSettings(), 0.0)


@pytest.mark.parametrize(
    ("imitating", "labelled"), [(0.0, False), (0.0, True), (0.3, False), (0.3, True), (1.0, True)]
)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("norm_adv", [False, True])
def test_every_way_to_learn_is_torch_s(
    native: NativeKernels, imitating: float, *, labelled: bool, masked: bool, norm_adv: bool
) -> None:
    settings = TrainSettings(norm_adv=norm_adv, clip_coef=0.1, vf_coef=0.7, ent_coef=0.05)
    student = Given(21, (64,))
    samples = random_samples(200, 21, masked=masked, labelled=labelled)
    indices = torch.randperm(200, generator=generator(13))[:64]
    assert_same_lesson(native, student, samples, indices, settings, imitating)


def test_one_sample_alone_is_its_own_mean(native: NativeKernels) -> None:
    samples = random_samples(3, 5, masked=False, labelled=False)
    assert_same_lesson(native, Given(5, (1,)), samples, torch.tensor([2]), TrainSettings(), 0.0)


def test_with_a_memory_the_steps_of_some_rows_are_learned_from(native: NativeKernels) -> None:
    steps, rows, width = 4, 6, 9
    flat = random_samples(steps * rows, width, masked=True, labelled=True)
    arrays = {name: array.unflatten(0, (steps, rows)) for name, array in flat.arrays()}
    memory = (torch.randn(rows, 2), torch.randn(rows, 2))
    samples = Samples(**arrays, begins=torch.zeros(steps, rows, dtype=torch.bool), memory=memory)  # type: ignore[arg-type]
    student = Given(width, (steps, 2))
    assert_same_lesson(native, student, samples, torch.tensor([4, 1]), TrainSettings(), 0.3)


def test_what_is_no_number_is_passed_on(native: NativeKernels) -> None:
    samples = random_samples(8, 5, masked=False, labelled=False)
    student = Given(5, (8,))
    with torch.no_grad():
        student.logits[3, 2] = math.nan
    objective, by_logits, _ = learned(native, student, samples, torch.arange(8), TrainSettings(), 0.0)
    assert math.isnan(objective.terms["total"])
    assert by_logits[3].isnan().any()
    assert not by_logits[4].isnan().any()


def test_an_action_there_is_not_is_refused(native: NativeKernels) -> None:
    samples = random_samples(8, 5, masked=False, labelled=True)
    for wrong in (5, -1):
        actions = samples.actions.clone()
        actions[6] = wrong
        for name in ("actions", "labels"):
            given = replace(samples, **{name: actions})
            with pytest.raises(ValueError, match=f"{name} of another shape"):
                native.objective(Given(5, (2,)), given, torch.tensor([1, 6]), TrainSettings(), 0.5)


# --- moving -----------------------------------------------------------------------------------------------


SHAPES = ((40, 17), (40,), (3, 40), (1,))


class Moved:
    """Parameters that one kind of kernels moves."""

    def __init__(self, kernels: Any, limit: float, shapes: tuple[tuple[int, ...], ...] = SHAPES) -> None:
        random = generator(20)
        self.parameters = [torch.nn.Parameter(torch.randn(*shape, generator=random)) for shape in shapes]
        self.optimiser = torch.optim.Adam(self.parameters, lr=0.01, eps=1e-5, fused=True)
        self.use(kernels, limit)

    def use(self, kernels: Any, limit: float) -> None:
        self.move = kernels.mover(self.optimiser, limit)

    def step(self, seed: int) -> float:
        random = generator(seed)
        for parameter in self.parameters:
            parameter.grad = torch.randn(parameter.shape, generator=random)
        norm = float(self.move())
        assert all(parameter.grad is None for parameter in self.parameters)
        return norm


def assert_alike(some: Moved, others: Moved) -> None:
    for one, other in zip(some.parameters, others.parameters, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("limit", [0.5, 100.0, math.inf])
def test_weights_move_as_with_torch(native: NativeKernels, limit: float) -> None:
    ours, torchs = Moved(native, limit), Moved(TORCH, limit)
    for seed in range(20):
        assert ours.step(seed) == pytest.approx(torchs.step(seed), rel=1e-5)
    assert_alike(ours, torchs)


def test_either_goes_on_where_the_other_stopped(native: NativeKernels) -> None:
    ours, torchs = Moved(native, 0.5), Moved(TORCH, 0.5)
    for kernels, other in ((native, TORCH), (TORCH, native), (native, TORCH)):
        ours.use(kernels, 0.5)
        torchs.use(other, 0.5)
        for seed in range(5):
            ours.step(seed), torchs.step(seed)
    assert_alike(ours, torchs)
    state = ours.optimiser.state_dict()["state"]
    assert {float(each["step"]) for each in state.values()} == {15.0}


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_nothing_moves_by_gradients_that_are_no_numbers(native: NativeKernels, wrong: float) -> None:
    for moved in (Moved(native, 0.5), Moved(TORCH, 0.5)):
        before = [parameter.detach().clone() for parameter in moved.parameters]
        for parameter in moved.parameters:
            parameter.grad = torch.zeros_like(parameter)
        moved.parameters[2].grad[1, 3] = wrong  # type: ignore[index]
        assert not math.isfinite(float(moved.move()))
        assert all(map(torch.equal, before, moved.parameters))


# --- together ---------------------------------------------------------------------------------------------


def test_arrays_that_do_not_fit_are_refused(native: NativeKernels) -> None:
    with pytest.raises(ValueError, match="uniforms of another shape"):
        choose(native, torch.zeros(3, 5), None, torch.zeros(2))
    with pytest.raises(TypeError):
        choose(native, torch.zeros(5, 3).T, None, torch.zeros(3))
    crew = _kernels.make(_kernels.NAMES[0], 1, 0)
    one = np.zeros(4, np.float32)
    with pytest.raises(ValueError, match="parameters of another shape"):
        crew.move([(one, one[:3], one, one)], 0.1, 0.9, 0.999, 1e-5, 1.0, 1.0)
    with pytest.raises(ValueError, match="index of another shape"):
        learn_from(crew, index=7)
    with pytest.raises(ValueError, match="no kernels 'mmx' on this processor"):
        _kernels.make("mmx", 1, 0)


def learn_from(crew: Any, *, index: int) -> None:
    """One row of three actions, of a single sample."""
    logits, numbers = np.zeros((1, 3), np.float32), np.zeros(1, np.float32)
    at, actions = np.array([index]), np.zeros(1, np.int64)
    stored = (actions, numbers, numbers, numbers, None, None)
    crew.learn(logits, numbers, at, *stored, 0.2, 0.5, 0.0, 0.0, False, logits.copy(), numbers.copy())


@pytest.mark.parametrize("threads", [2, 3])
def test_the_bits_do_not_depend_on_how_many_work(threads: int) -> None:
    width, rows = 21, 1_000
    student = Given(width, (rows,))
    samples = random_samples(rows, width, masked=True, labelled=True)
    indices = torch.randperm(rows, generator=generator(13))
    logits, masks = student.logits.detach(), samples.masks
    uniforms = torch.rand(rows, generator=generator(2))
    scale = ObservationScale((width,), CPU, active=True)
    found = []
    for count in (1, threads):
        kernels = threaded(_kernels.NAMES[0], count)
        scaled = torch.empty_like(logits)
        kernels.scale(scale, logits, scaled)
        objective, *gradients = learned(kernels, student, samples, indices, TrainSettings(), 0.3)
        moved = Moved(kernels, 0.5, shapes=((300, 100), (7,)))
        norms = [moved.step(seed) for seed in range(3)]
        chosen_ones = choose(kernels, logits, masks, uniforms)
        arrays = [scaled, *gradients, *chosen_ones, *(each.detach() for each in moved.parameters)]
        found.append((objective.terms, norms, [array.numpy().tobytes() for array in arrays]))
    assert found[0] == found[1]


def test_rounding_never_chooses_what_is_forbidden(native: NativeKernels) -> None:
    rows, width = 20_000, 69
    logits = torch.randn(rows, width, generator=generator()) * 2
    masks = torch.zeros(rows, width, dtype=torch.bool)
    masks[:, 3:37] = True
    found, _ = choose(native, logits, masks, torch.full((rows,), 1 - 2**-24))
    assert ((found >= 3) & (found < 37)).all()
