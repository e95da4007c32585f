"""Training where envs and network share a device: on tensors of the CPU, and on a GPU where there is one."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from support.device_batch import tensor_batch
from torch import Tensor, nn

from hotloop.core.errors import DeviceError, InputError, SetupError
from hotloop.envs import cuda
from hotloop.envs.open import make
from hotloop.train import ppo
from hotloop.train import trainer as trainers
from hotloop.train.algorithm import DivergedError
from hotloop.train.arithmetic import Kernels
from hotloop.train.device.collector import DeviceCollector
from hotloop.train.device.graphs import Recorded
from hotloop.train.device.kernels import TokenSum, load, take_rows
from hotloop.train.device.learner import RecordedLearner
from hotloop.train.networks import ActorCritic, TokenBag
from hotloop.train.settings import TrainSettings
from hotloop.train.trainer import Trainer
from hotloop.train.windows import windows_of

WHY_NOT = cuda.why_not("prospector")
on_gpu = pytest.mark.skipif(WHY_NOT is not None, reason=f"TRAINING ON A GPU IS NOT TESTED HERE: {WHY_NOT}")

SMALL: dict[str, Any] = {
    "num_steps": 8,
    "minibatch_size": 64,
    "update_epochs": 2,
    "hidden": (16,),
    "embedding": 8,
    "total_timesteps": 100_000,
}
TOKENS: dict[str, Any] = {"supervised_steps": 128, "fade_steps": 64, "lstm": 8}
WORLDS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("prospector/short", {"time_max": 20}, {}),
    ("grid/guard", {"max_steps": 11}, TOKENS),
]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=WORLDS, ids=[world[0] for world in WORLDS])
def sides(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[Trainer, Trainer, Any]:
    """The same run on arrays of the host and on tensors, with both windows."""
    target, keys, given = request.param
    settings = TrainSettings(**{**SMALL, **given, "kernels": "torch"})
    batches = make(target, num_envs=8, **keys), tensor_batch(target, num_envs=8, **keys)
    windows = [windows_of(batch) for batch in batches]
    host = Trainer(batches[0], settings, watchers=windows[:1])
    monkeypatch.setattr(ppo, "find_kernels", lambda *_, **__: Kernels(records=True))
    return host, Trainer(batches[1], settings, watchers=windows[1:]), windows


def test_tensors_are_trained_on_as_arrays_are(sides: tuple[Trainer, Trainer, Any]) -> None:
    host, device, windows = sides
    assert isinstance(device.algorithm.collector, DeviceCollector)
    assert isinstance(device.algorithm.learner, RecordedLearner)
    for _ in range(6):
        one, other = host.update(), device.update()
        assert (one.phase, one.agreement) == (other.phase, other.agreement)
        assert one.losses == pytest.approx(other.losses, abs=1e-4)
    for mine, theirs in zip(host.network.parameters(), device.network.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-4)
    one, other = (window.close() for window in windows)
    assert one.episodes == other.episodes > 0
    assert one.return_sum == pytest.approx(other.return_sum)
    assert (one.length_sum, one.return_min, one.return_max) == pytest.approx(
        (other.length_sum, other.return_min, other.return_max)
    )
    assert one.infos == pytest.approx(other.infos)
    assert one.sampled == pytest.approx(other.sampled)


def test_rollouts_are_the_same_to_the_bit(sides: tuple[Trainer, Trainer, Any]) -> None:
    host, device, _ = sides
    while not host.algorithm.collector.collect(host.student, None).cuts:
        assert not device.algorithm.collector.collect(device.student, None).cuts
    device.algorithm.collector.collect(device.student, None)
    one, other = host.algorithm.collector.rollout, device.algorithm.collector.rollout
    for name in ("observations", "actions", "log_probs", "values", "rewards", "dones", "last_values"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name
    gathered = [torch.cat([getattr(cut, name) for cut in one.cuts]) for name in ("steps", "rows")]
    assert torch.equal(gathered[0], other.cuts[0].steps)
    assert torch.equal(gathered[1], other.cuts[0].rows)
    assert torch.equal(torch.cat([cut.observations for cut in one.cuts]), other.cuts[0].observations)


def test_nothing_moves_after_a_loss_that_is_no_number(
    sides: tuple[Trainer, Trainer, Any], tmp_path: Path
) -> None:
    _, device, _ = sides
    device.folder = tmp_path
    device.update()
    before = [each.detach().clone() for each in device.network.parameters()]
    kept = device.algorithm.collector.collect(device.student, None)
    samples = device.algorithm.prepare(kept)
    samples.returns.view(-1)[3] = float("nan")
    with pytest.raises(DivergedError, match=r"epoch 0, minibatch \d+: first in returns"):
        device.algorithm.learner.learn(samples, 0.0)
    bad = int(device.algorithm.learner.first)
    assert bad < 2 * len(device.algorithm.learner.order)
    moved = [not torch.equal(a, b) for a, b in zip(before, device.network.parameters(), strict=True)]
    assert any(moved) == (bad > 0)
    assert all(torch.isfinite(each).all() for each in device.network.parameters())


def test_a_run_on_tensors_goes_on_with_fresh_envs(
    sides: tuple[Trainer, Trainer, Any], tmp_path: Path
) -> None:
    _, device, _ = sides
    device.update()
    path = device.save(tmp_path)
    target, keys = device.batch.spec.target, device.batch.spec.made_from
    assert keys is not None
    fresh = tensor_batch(target, **{**keys.keys, "num_envs": 8})
    resumed = Trainer(fresh, device.settings, resume=path)
    assert resumed.steps == device.steps
    assert resumed.algorithm.collector.begins.all()
    for mine, theirs in zip(device.network.parameters(), resumed.network.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    resumed.update()


def test_observations_are_kept_in_the_precision_they_are_read_in() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ppo, "find_kernels", lambda *_, **__: Kernels(records=True))
        settings = replace(TrainSettings(**SMALL), mixed_precision=True)
        try:
            training = Trainer(tensor_batch("prospector/short", num_envs=8), settings)
        except SetupError as error:
            pytest.skip(str(error))
        assert training.algorithm.collector.rollout.observations.dtype == torch.bfloat16
        assert training.update().losses["total"] > 0


def test_envs_and_network_must_be_on_one_device() -> None:
    batch: Any = tensor_batch("prospector/short", num_envs=8)
    with pytest.raises(InputError, match=r"envs are on cpu and the network on meta.*host_views=true"):
        trainers.check_together(batch, torch.device("meta"))


def test_rows_that_come_and_go_are_refused_on_a_device() -> None:
    batch: Any = tensor_batch("farm/dev", num_envs=2, perception=False)
    with pytest.raises(InputError, match=r"nobody's.*host_views=true"):
        Trainer(batch, TrainSettings(**{**SMALL, "minibatch_size": 50}))


def test_too_little_memory_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Trainer(make("prospector/short", num_envs=8), TrainSettings(**SMALL))

    def collect(*_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9.00 GiB. GPU 0 has 1 GiB free.")

    monkeypatch.setattr(training.algorithm.collector, "collect", collect)
    with pytest.raises(DeviceError, match=r"\(Tried to allocate 9.00 GiB\): use fewer num_envs"):
        training.update()


def test_graphs_are_refused_without_a_gpu() -> None:
    with pytest.raises(SetupError, match="a GPU records them"):
        Trainer(make("prospector/short", num_envs=8), TrainSettings(**{**SMALL, "kernels": "graphs"}))


def test_on_a_cpu_work_is_done_every_time() -> None:
    done: list[int] = []
    work = Recorded(lambda: done.append(1), torch.device("cpu"))
    for _ in range(3):
        work()
    assert len(done) == 3


@on_gpu
def test_on_a_gpu_work_is_done_as_often_as_asked() -> None:
    trainers.use_own_stream()
    total = torch.zeros((), device="cuda")
    work = Recorded(lambda: total.add_(1), torch.device("cuda"))  # type: ignore[arg-type,return-value]
    for _ in range(5):
        work()
    assert float(total) == 5


@on_gpu
@pytest.mark.parametrize("width", [264, 260, 1])
def test_rows_are_taken_as_torch_takes_them(width: int) -> None:
    rows = torch.randn(1000, width, device="cuda").bfloat16()
    numbers = torch.randperm(1000, device="cuda")[:777]
    assert torch.equal(take_rows(rows, numbers), rows[numbers])


@on_gpu
def test_sums_of_tokens_are_torchs() -> None:
    assert load() is not None
    tokens = torch.randint(0, 256, (70, 200, 3), dtype=torch.uint8)
    tokens[..., 0][torch.rand(70, 200) < 0.6] = 0xFF
    bag = TokenBag(64)
    nn.init.normal_(bag.table)
    expected = bag(tokens)
    weights = torch.randn_like(expected)
    (expected * weights).sum().backward()
    table = bag.table.detach().cuda().requires_grad_()
    sums = torch.relu(TokenSum.apply(table, tokens.cuda()))  # type: ignore[no-untyped-call]
    (sums * weights.cuda()).sum().backward()
    torch.testing.assert_close(sums.cpu(), expected, atol=1e-4, rtol=1e-4)
    assert table.grad is not None
    torch.testing.assert_close(table.grad.cpu(), bag.table.grad, atol=1e-4, rtol=1e-4)


@on_gpu
@pytest.mark.parametrize("half", [False, True])
def test_the_recurrence_is_that_of_torchs_cells(half: bool) -> None:
    assert load() is not None
    network = ActorCritic(nn.Identity(), 12, 5, hidden=(16,), lstm=32)
    seen, begins = torch.randn(9, 20, 12), torch.rand(9, 20) < 0.2
    memory = torch.randn(20, 32), torch.randn(20, 32)
    found = {}
    for device in ("cpu", "cuda"):
        there = network.to(device)
        there.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16, enabled=half and device == "cuda"):
            logits, values, after = there(
                seen.to(device), (memory[0].to(device), memory[1].to(device)), begins.to(device)
            )
        ((logits.float() ** 2).sum() + values.float().sum()).backward()
        gradients = [each.grad.clone().cpu() for each in there.parameters() if each.grad is not None]
        assert after is not None
        found[device] = [*(each.detach().float().cpu() for each in (logits, *after)), *gradients]
    for mine, theirs in zip(found["cuda"], found["cpu"], strict=True):
        assert distance(mine, theirs) < (3e-2 if half else 1e-4)


def distance(mine: Tensor, theirs: Tensor) -> float:
    return float((mine - theirs).norm() / theirs.norm().clamp(min=1e-6))


@on_gpu
@pytest.mark.parametrize(("target", "keys", "given"), WORLDS, ids=[world[0] for world in WORLDS])
def test_recorded_training_is_torchs(target: str, keys: dict[str, Any], given: dict[str, Any]) -> None:
    settings = TrainSettings(**{**SMALL, **given, "device": "cuda"})
    sides = [
        Trainer(make(target, num_envs=8, device="cuda", **keys), replace(settings, kernels=kernels))
        for kernels in ("graphs", "torch")
    ]
    sides[1].algorithm.shuffling = torch.Generator("cuda").manual_seed(settings.seed)
    for _ in range(6):
        kept, other = (side.algorithm.collector.collect(side.student, None) for side in sides)
        assert torch.equal(kept.actions, other.actions)
        torch.testing.assert_close(kept.values, other.values, atol=1e-5, rtol=1e-4)
    assert all(torch.isfinite(torch.tensor(list(sides[0].update().losses.values()))).all() for _ in range(6))
    assert sides[0].counters == {"updates.graphs": 6}
