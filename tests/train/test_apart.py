"""Envs on the host, the network elsewhere: rollouts are those of one place, to the bit."""

from typing import Any

import pytest
import torch

from hotloop.envs.open import make
from hotloop.train import ppo
from hotloop.train.arithmetic import Kernels
from hotloop.train.device.apart import SplitCollector
from hotloop.train.settings import TrainSettings
from hotloop.train.trainer import Trainer

SMALL: dict[str, Any] = {
    "num_steps": 8,
    "minibatch_size": 32,
    "update_epochs": 1,
    "hidden": (16,),
    "embedding": 8,
    "torch_threads": 1,
    "kernels": "torch",
}
WORLDS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("prospector/short", {"time_max": 20}, {}),
    ("grid/guard", {"max_steps": 11}, {"supervised_steps": 64, "fade_steps": 64, "lstm": 8}),
    ("cards", {}, {}),
    ("farm/dev", {"agents": 4, "max_agents": 8}, {"minibatch_size": 128}),
]
KEPT = (
    "observations",
    "actions",
    "log_probs",
    "values",
    "rewards",
    "dones",
    "begins",
    "last_values",
    "masks",
)


@pytest.mark.parametrize(("target", "keys", "given"), WORLDS, ids=[world[0] for world in WORLDS])
def test_rollouts_are_the_same_to_the_bit(
    target: str, keys: dict[str, Any], given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = TrainSettings(**{**SMALL, **given})
    one: Any = Trainer(make(target, num_envs=8, **keys), settings)
    monkeypatch.setattr(ppo, "Collector", SplitCollector)
    other: Any = Trainer(make(target, num_envs=8, **keys), settings)
    assert isinstance(other.algorithm.collector, SplitCollector)
    for _ in range(4):
        assert one.update() == other.update()
    mine, theirs = one.algorithm.collector.rollout, other.algorithm.collector.rollout
    for name in KEPT:
        a, b = getattr(mine, name), getattr(theirs, name)
        assert (a is None and b is None) or torch.equal(a, b), name
    assert len(mine.cuts) == len(theirs.cuts)


WHY_NOT = None if torch.cuda.is_available() else "torch finds no GPU"


@pytest.mark.skipif(WHY_NOT is not None, reason=f"COPIES TO A GPU ARE NOT TESTED HERE: {WHY_NOT}")
@pytest.mark.parametrize(("target", "keys", "given"), WORLDS[:2], ids=[world[0] for world in WORLDS[:2]])
def test_on_a_gpu_what_is_recorded_is_what_is_launched(
    target: str, keys: dict[str, Any], given: dict[str, Any]
) -> None:
    settings = TrainSettings(**{**SMALL, **given, "device": "cuda"})
    batches = [make(target, num_envs=8, **keys) for _ in range(2)]
    launched: Any = Trainer(batches[0], settings)
    recorded: Any = Trainer(batches[1], settings)
    collector = recorded.algorithm.collector
    fixed = recorded.network.has_fixed_shapes
    collector.kernels, collector.recorded = Kernels(records=True), fixed
    assert collector.raw.is_pinned()
    for _ in range(4):
        kept = [each.algorithm.collector.collect(each.student, None) for each in (launched, recorded)]
    for name in KEPT:
        a, b = (getattr(each, name) for each in kept)
        assert (a is None and b is None) or torch.equal(a, b), name
    assert torch.equal(kept[0].actions, kept[1].actions)
