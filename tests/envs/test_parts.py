"""Observations with named parts, and masks of legal actions: in batches, other libraries and training."""

from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test
from support import table

import hotloop
from hotloop.core import registry
from hotloop.core.world import Array, Layout, Part
from hotloop.envs.adapters.gymnasium import HotloopEnv, HotloopVectorEnv
from hotloop.envs.adapters.pettingzoo import HotloopParallelEnv
from hotloop.envs.adapters.pufferlib import PufferRows
from hotloop.envs.batch import Batch
from hotloop.train.networks import PartsReader
from hotloop.train.settings import TrainSettings
from hotloop.train.trainer import Trainer


@pytest.fixture(autouse=True)
def there_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    found = registry.PresetTarget(world=table.world, preset="default")
    monkeypatch.setattr(registry, "find", lambda target: found)


def make(num_envs: int = 3) -> Batch:
    batch = hotloop.make("table", num_envs=num_envs, impl="reference")
    batch.reset()
    return batch


def test_parts_are_views_of_the_one_array() -> None:
    batch = make()
    assert batch.observations.shape == (3, table.AGENTS, table.ROW)
    assert {name: rows.shape for name, rows in batch.parts.items()} == {
        part.name: (3, table.AGENTS, *part.shape) for part in table.PARTS
    }
    joined = np.concatenate([rows.reshape(3, table.AGENTS, -1) for rows in batch.parts.values()], axis=-1)
    assert joined.tobytes() == batch.observations.tobytes()
    batch.step(np.zeros((3, table.AGENTS), np.int32))
    assert batch.parts["self"][:, :, 0].tolist() == [[pytest.approx(0.01)] * table.AGENTS] * 3
    assert all(np.shares_memory(rows, batch.observations) for rows in batch.parts.values())


def test_a_world_without_parts_has_none() -> None:
    assert make().parts
    plain = Layout(agents=1, num_actions=2, arrays=(Array(name="observations", dtype="float32", shape=(3,)),))
    assert plain.parts == ()


def test_parts_that_do_not_make_the_row_are_refused() -> None:
    with pytest.raises(ValueError, match="do not make its row of 3: a 2"):
        Layout(
            agents=1,
            num_actions=2,
            arrays=(Array(name="observations", dtype="float32", shape=(3,)),),
            parts=(Part(name="a", shape=(2,)),),
        )


@pytest.mark.filterwarnings("ignore:.*A Box observation space m")
def test_gymnasium_sees_a_dict_and_the_masks() -> None:
    env = HotloopEnv("table", impl="reference")
    assert isinstance(env.observation_space, Dict)
    assert env.observation_space["self"] == Box(0.0, 1.0, (table.AGENTS, 3), np.float32)
    seen, info = env.reset(seed=1)
    assert seen["view"].shape == (table.AGENTS, 2, 4, 4)
    assert info["action_mask"].tolist() == [[True, False, True, True], [True, True, False, True]]
    assert env.action_masks().tolist() == info["action_mask"].reshape(-1).tolist()
    before = seen["self"].copy()
    env.step([0, 0])
    assert seen["self"].tolist() == before.tolist()
    check_env(env, skip_render_check=True)


def test_a_vector_env_keeps_what_was_seen_last_part_by_part() -> None:
    env = HotloopVectorEnv("table", num_envs=2, impl="reference", length=2)
    env.reset(seed=1)
    for _ in range(2):
        seen, _, _, cut, infos = env.step(np.zeros((2, table.AGENTS), np.int64))
    assert cut.all()
    assert infos["final_obs"][1]["self"][0, 0] == pytest.approx(0.02)
    assert seen["self"][1, 0, 0] == 0.0
    assert env.observation_space.contains(seen)


def test_pettingzoo_gives_each_agent_its_parts_and_its_mask() -> None:
    env = HotloopParallelEnv("table", impl="reference")
    seen, infos = env.reset(seed=3)
    assert isinstance(env.observation_space("agent_1"), Dict)
    assert seen["agent_1"]["self"][1] == 1.0
    assert infos["agent_1"]["action_mask"].tolist() == [True, True, False, True]
    parallel_api_test(env, num_cycles=20)


def test_pufferlib_sees_flat_rows() -> None:
    env = PufferRows("table", num_envs=2, impl="reference")
    assert env.single_observation_space.shape == (table.ROW,)
    rows, _ = env.reset(0)
    assert rows.shape == (2 * table.AGENTS, table.ROW)


def test_a_network_reads_each_part_by_its_kind_and_learns_under_masks(tmp_path: Path) -> None:
    settings = TrainSettings(
        num_steps=8, minibatch_size=64, total_timesteps=64, embedding=8, hidden=(16,), torch_threads=1
    )
    trainer = Trainer(make(4), settings, folder=tmp_path)
    reader = trainer.network.encoder
    assert isinstance(reader, PartsReader)
    kinds = [type(encoder).__name__ for encoder in reader.encoders]
    assert kinds == ["Identity", "ObjectBag", "ImageReader", "ObjectBag"]
    before = {name: weights.clone() for name, weights in trainer.network.named_parameters()}
    while not trainer.finished:
        update = trainer.update()
    assert np.isfinite(update.losses["total"])
    moved = [
        name for name, weights in trainer.network.named_parameters() if not torch.equal(weights, before[name])
    ]
    assert {name.split(".")[2] for name in moved if name.startswith("encoder.encoders")} == {"1", "2", "3"}
    kept = trainer.algorithm.collector.rollout
    assert kept.masks is not None
    chosen = kept.masks.gather(-1, kept.actions[..., None])
    assert bool(chosen.all()), "no action was chosen that its mask forbids"
