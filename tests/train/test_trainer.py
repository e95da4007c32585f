import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

import hotloop
from hotloop.core.errors import InputError, SetupError
from hotloop.envs.batch import Batch
from hotloop.train.algorithm import DivergedError
from hotloop.train.settings import TrainSettings
from hotloop.train.trainer import Trainer

SMALL = {"num_steps": 8, "minibatch_size": 16, "update_epochs": 2, "hidden": (16,), "embedding": 8}
IMITATING = {"supervised_steps": 64, "fade_steps": 64, "total_timesteps": 1000}


@contextmanager
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with one_thread():
        yield


def batch_of(target: str = "prospector/short", **given: Any) -> Batch:
    return hotloop.make(target, **{"num_envs": 4, **given})


def trainer_of(
    batch: Batch, *, resume: Path | None = None, folder: Path = Path("train_dir"), **given: Any
) -> Trainer:
    return Trainer(batch, TrainSettings(**{**SMALL, **given}), resume=resume, folder=folder)


def weights_of(trainer: Trainer) -> list[torch.Tensor]:
    return [weights.detach().clone() for weights in trainer.network.parameters()]


def same(one: Trainer, other: Trainer) -> bool:
    return all(torch.equal(a, b) for a, b in zip(weights_of(one), weights_of(other), strict=True))


def test_an_update_counts_the_steps_it_trained_on() -> None:
    with closing(batch_of("grid/guard", num_envs=2)) as batch:
        trainer = trainer_of(batch, total_timesteps=32)
        first = trainer.update()
        assert (first.index, first.steps, first.agent_steps, first.phase) == (0, 16, 128, "ppo")
        assert batch.counters["env_steps"] == 16
        assert not trainer.finished
        assert trainer.update().index == 1
        assert trainer.finished


def test_the_learning_rate_falls_in_a_line() -> None:
    with closing(batch_of()) as batch:
        trainer = trainer_of(batch, total_timesteps=128, learning_rate=0.01)
        rates = [trainer.update().learning_rate for _ in range(5)]
        assert rates == pytest.approx([0.01, 0.0075, 0.005, 0.0025, 0.0])


def test_a_learning_rate_that_is_not_annealed_stays() -> None:
    with closing(batch_of()) as batch:
        trainer = trainer_of(batch, total_timesteps=64, learning_rate=0.01, anneal_lr=False)
        assert [trainer.update().learning_rate for _ in range(3)] == [0.01] * 3


def test_a_learning_rate_of_zero_changes_no_weight() -> None:
    with closing(batch_of()) as batch:
        trainer = trainer_of(batch, learning_rate=0.0)
        before = weights_of(trainer)
        trainer.update()
        assert all(torch.equal(a, b) for a, b in zip(before, weights_of(trainer), strict=True))


def test_the_teacher_is_off_once_imitation_has_faded_out() -> None:
    with closing(batch_of()) as batch:
        trainer = trainer_of(batch, **IMITATING)
        updates = [trainer.update() for _ in range(4)]
        assert [update.phase for update in updates] == ["imitation"] * 2 + ["fade"] * 2
        assert all(update.agreement is not None for update in updates)
        decisions = batch.counters["decisions.greedy"]
        assert decisions == 4 * 4 * 8
        last = trainer.update()
        assert (last.phase, last.agreement) == ("ppo", None)
        assert batch.counters["decisions.greedy"] == decisions


def test_while_imitating_the_critic_learns_and_the_policy_gradient_does_not() -> None:
    with closing(batch_of()) as batch:
        losses = trainer_of(batch, **IMITATING).update().losses
        assert {"imitation", "value"} <= set(losses)
        assert "policy" not in losses


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "vectors": ("prospector/short", {}),
    "vectors, imitating": ("prospector/short", IMITATING),
    "tokens, imitating": ("grid/guard", IMITATING),
    "tokens with a memory": ("grid/guard", {"lstm": 8, "max_steps": 20}),
    "vectors with a memory": ("prospector/short", {"lstm": 8, **IMITATING}),
}


@pytest.mark.parametrize("impl", ["native", "reference"])
@pytest.mark.parametrize("name", CASES)
def test_a_resumed_run_goes_on_as_if_it_had_not_stopped(name: str, impl: str, tmp_path: Path) -> None:
    target, given = CASES[name]
    world = {"impl": impl, "num_envs": 2} | (
        {"max_steps": given["max_steps"]} if "max_steps" in given else {}
    )
    settings = {key: value for key, value in given.items() if key != "max_steps"}
    with closing(batch_of(target, **world)) as batch, closing(batch_of(target, **world)) as fresh:
        going = trainer_of(batch, **settings)
        for _ in range(3):
            going.update()
        path = going.save(tmp_path)
        resumed = trainer_of(fresh, resume=path, **settings)
        assert (resumed.steps, resumed.updates) == (going.steps, going.updates)
        assert same(going, resumed)
        for _ in range(4):
            assert going.update() == resumed.update()
        assert same(going, resumed)
        assert (batch.digest() == fresh.digest()).all()


@pytest.mark.parametrize("name", ["vectors, imitating", "tokens with a memory"])
def test_the_twin_and_native_code_teach_the_same(name: str) -> None:
    target, given = CASES[name]
    world = {"max_steps": given["max_steps"]} if "max_steps" in given else {}
    settings = {key: value for key, value in given.items() if key != "max_steps"}
    curves, finals = [], []
    for impl in ("native", "reference"):
        with closing(batch_of(target, impl=impl, num_envs=2, **world)) as batch:
            trainer = trainer_of(batch, **settings)
            curves.append([trainer.update() for _ in range(5)])
            finals.append(weights_of(trainer))
    assert curves[0] == curves[1]
    assert all(torch.equal(a, b) for a, b in zip(*finals, strict=True))


def test_the_seed_decides_the_run_and_another_seed_another() -> None:
    curves = []
    for seed in (1, 1, 2):
        with closing(batch_of()) as batch:
            trainer = trainer_of(batch, seed=seed)
            curves.append([trainer.update().losses for _ in range(2)])
    assert curves[0] == curves[1]
    assert curves[0] != curves[2]


def test_the_global_random_numbers_of_torch_are_left_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with closing(batch_of()) as batch:
        trainer_of(batch, lstm=8).update()
    assert torch.equal(torch.rand(3), expected)


@pytest.fixture
def _plain_kernels() -> Iterator[None]:
    """Without oneDNN, whose bfloat16 fails on some virtual machines."""
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    yield
    torch._C._set_mkldnn_enabled(before)


@pytest.mark.usefixtures("_plain_kernels")
def test_bfloat16_learns_in_float32_weights() -> None:
    with closing(batch_of()) as batch, closing(batch_of()) as other:
        mixed, full = trainer_of(batch, mixed_precision=True, lstm=8), trainer_of(other, lstm=8)
        found, exact = mixed.update(), full.update()
        assert all(weights.dtype == torch.float32 for weights in mixed.network.parameters())
        assert found.losses != exact.losses
        assert found.losses["entropy"] == pytest.approx(exact.losses["entropy"], rel=0.02)


def test_bfloat16_that_does_not_work_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: torch.Tensor, other: torch.Tensor) -> None:
        raise RuntimeError("could not create a primitive")

    monkeypatch.setattr(torch.Tensor, "__matmul__", broken)
    with closing(batch_of()) as batch, pytest.raises(SetupError, match="ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"):
        trainer_of(batch, mixed_precision=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_compiled_network_learns_the_same() -> None:
    if not shutil.which("g++"):
        pytest.skip("torch.compile needs a C++ compiler, and this machine has none")
    with closing(batch_of()) as batch, closing(batch_of()) as other:
        quick, plain = trainer_of(batch, compile=True), trainer_of(other)
        assert quick.update().losses["total"] == pytest.approx(plain.update().losses["total"], abs=1e-4)


def test_compiling_without_a_compiler_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with closing(batch_of()) as batch, pytest.raises(SetupError, match="needs a C\\+\\+ compiler"):
        trainer_of(batch, compile=True)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_cuda_is_refused_where_there_is_none() -> None:
    with closing(batch_of()) as batch, pytest.raises(InputError, match="no CUDA device here; use device=cpu"):
        trainer_of(batch, device="cuda")


def test_minibatches_are_checked_before_anything_runs() -> None:
    with closing(batch_of()) as batch, pytest.raises(InputError, match="minibatch_size=15 does not divide"):
        trainer_of(batch, minibatch_size=15)
    assert batch_of().counters["resets"] == 0


def test_a_loss_that_is_no_number_stops_and_leaves_what_is_needed_to_look_at_it(tmp_path: Path) -> None:
    with closing(batch_of()) as batch:
        trainer = trainer_of(batch, folder=tmp_path)
        trainer.update()
        with torch.no_grad():
            trainer.network.value.bias.fill_(float("nan"))  # type: ignore[union-attr,operator]
        before = trainer.network.policy.weight.detach().clone()  # type: ignore[union-attr,operator]
        with pytest.raises(DivergedError, match=r"update 1, epoch 0, minibatch 0: .*diverged-1.pt") as caught:
            trainer.update()
    assert "first in advantages" in str(caught.value)
    (path,) = tmp_path.glob("diverged-*.pt")
    evidence = torch.load(path, weights_only=True)
    assert (evidence["update"], evidence["steps"]) == (1, 32)
    assert evidence["samples"]["observations"].shape == (16, 260)
    assert len(evidence["indices"]) == 16
    assert torch.equal(evidence["network"]["policy.weight"], before)


def test_a_nan_is_named_where_it_first_appeared(tmp_path: Path) -> None:
    with closing(batch_of()) as batch:
        trainer = trainer_of(batch, folder=tmp_path)
        algorithm = trainer.algorithm
        kept = algorithm.collect(0)
        samples = algorithm.prepare(kept)
        samples.observations[3, 2] = float("inf")
        samples.observations[3, 3] = float("-inf")
        with pytest.raises(DivergedError, match="first in observations"):
            algorithm.learner.learn(samples, 0.0)
