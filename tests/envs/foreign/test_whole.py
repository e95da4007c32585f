"""Batches of somebody else's in our trainer: batch objects, vector envs, VecEnvs."""

from pathlib import Path

import numpy as np
import pytest

from hotloop.core.errors import InputError
from hotloop.core.settings import Target
from hotloop.envs.foreign.training import open_trainable

BATCH = """
import numpy as np
from gymnasium.spaces import Box, Discrete

class Batch:
    observation_space, action_space = Box(-9, 9, (2,), np.float32), Discrete(3, start=1)

    def __init__(self, num_envs):
        self.num_envs, self.taken = num_envs, []

    def shown(self):
        return np.stack([self.at, self.base + np.arange(self.num_envs)], 1).astype(np.float32)

    def reset(self, seed=None):
        self.base, self.at = seed or 0, np.zeros(self.num_envs)
        self.base %= 7
        return self.shown(), {}

    def step(self, actions):
        self.taken.append(actions)
        self.at = self.at + 1
        cut = self.at >= 3
        self.at = np.where(cut, 0, self.at)
        return self.shown(), np.asarray(actions, float), np.zeros(self.num_envs, bool), cut, {}

def make(num_envs=2):
    return Batch(num_envs)

def five():
    return Batch(5)

def masked(num_envs=2):
    batch = Batch(num_envs)
    reset = batch.reset
    batch.reset = lambda seed=None: (reset(seed)[0], {"action_mask": np.ones((num_envs, 3))})
    return batch
"""
VEC = """
import numpy as np
from stable_baselines3.common.vec_env import VecEnv
from batch import Batch

class Vec(VecEnv):
    def __init__(self, num_envs):
        self.batch = Batch(num_envs)
        super().__init__(num_envs, self.batch.observation_space, self.batch.action_space)
    def reset(self):
        return self.batch.reset(seed=1)[0]
    def step_async(self, actions):
        self.actions = actions
    def step_wait(self):
        seen, rewards, ended, cut, _ = self.batch.step(self.actions)
        last = {"TimeLimit.truncated": True, "terminal_observation": np.full(2, 9.0)}
        infos = [last if each else {} for each in cut]
        return seen, rewards, ended | cut, infos
    def close(self): pass
    def get_attr(self, n, indices=None): return [None] * self.num_envs
    def set_attr(self, *a, **k): pass
    def env_method(self, *a, **k): return []
    def env_is_wrapped(self, c, indices=None): return [False] * self.num_envs

def make(num_envs=2):
    return Vec(num_envs)
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "batch.py").write_text(BATCH)
    (tmp_path / "vec.py").write_text(VEC)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize(("name", "last"), [("batch.py:make", 2.0), ("vec.py:make", 9.0)])
def test_a_batch_steps_all_envs_and_says_which_ends_are_a_time_limit(name: str, last: float) -> None:
    if name.startswith("vec"):
        pytest.importorskip("stable_baselines3")
    batch = open_trainable(Target(name, {"num_envs": 4}))
    batch.reset()
    actions = batch.new_actions()
    for step in range(3):
        actions[...] = step % 3
        batch.step(actions)
        assert batch.rewards.ravel().tolist() == [1 + step % 3] * 4  # its numbers begin with 1
    assert batch.truncations.all()
    assert not batch.terminals.any()
    assert batch.observations[:, 0].tolist() == [0.0] * 4
    assert batch.final_observations[:, 0].tolist() == [last] * 4
    assert batch.counters["env_steps"] == 12
    batch.close()


def test_a_batch_with_a_fixed_number_of_envs_is_taken_with_that_number_only() -> None:
    assert open_trainable(Target("batch.py:five", {"num_envs": 5})).spec.num_envs == 5
    with pytest.raises(InputError, match="makes 5 envs and not 8: give num_envs=5"):
        open_trainable(Target("batch.py:five", {"num_envs": 8}))


def test_a_batch_takes_no_workers_no_masks_and_no_reset_of_some_envs() -> None:
    with pytest.raises(InputError, match="steps its envs by itself"):
        open_trainable(Target("batch.py:make", {"num_envs": 4, "vector": "async"}))
    with pytest.raises(InputError, match="says which actions are legal"):
        open_trainable(Target("batch.py:masked", {"num_envs": 4}))
    batch = open_trainable(Target("batch.py:make", {"num_envs": 4}))
    with pytest.raises(InputError, match="can only be reset as a whole"):
        batch.reset_many(np.arange(2), np.arange(2, dtype=np.uint64))


def test_a_vector_env_that_resets_in_the_next_step_is_refused_with_what_to_give(tmp_path: Path) -> None:
    maker = (
        "import gymnasium\n\ndef make(num_envs=2):\n    return gymnasium.make_vec('CartPole-v1', num_envs)\n"
    )
    (tmp_path / "cart.py").write_text(maker)
    with pytest.raises(InputError, match="SAME_STEP"):
        open_trainable(Target("cart.py:make", {"num_envs": 2}))
