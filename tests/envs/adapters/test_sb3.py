"""Our worlds as Stable-Baselines3's VecEnv."""

import numpy as np
import pytest

import hotloop
from hotloop.core.errors import InputError

pytest.importorskip("stable_baselines3")


def test_it_steps_as_theirs_do_and_says_how_episodes_ended() -> None:
    envs = hotloop.make_vec("grid/toy", num_envs=3, api="sb3", agents=1, max_steps=5, map_size="12x12")
    envs.seed(7)
    seen = envs.reset()
    assert envs.observation_space.contains(seen[0])
    for _ in range(5):
        seen, rewards, dones, infos = envs.step(np.array([envs.action_space.sample() for _ in range(3)]))
    assert dones.tolist() == [True] * 3
    assert rewards.shape == (3,)
    assert all(info["TimeLimit.truncated"] for info in infos)
    assert infos[0]["terminal_observation"].shape == seen[0].shape
    assert not np.array_equal(infos[0]["terminal_observation"], seen[0])
    envs.close()


def test_a_seed_gives_the_same_episodes_as_gymnasiums_vector_env() -> None:
    keys = {"num_envs": 2, "agents": 1, "map_size": "12x12"}
    theirs, ours = hotloop.make_vec("grid/toy", **keys), hotloop.make_vec("grid/toy", api="sb3", **keys)
    ours.seed(3)
    assert np.array_equal(ours.reset(), theirs.reset(seed=3)[0])


def test_a_learner_of_theirs_learns_on_it() -> None:
    from stable_baselines3 import PPO

    envs = hotloop.make_vec("grid/toy", num_envs=2, api="sb3", agents=1, max_steps=8, map_size="12x12")
    PPO("MlpPolicy", envs, n_steps=8, batch_size=8, n_epochs=1).learn(16)
    envs.close()


def test_an_unknown_interface_is_refused() -> None:
    with pytest.raises(InputError, match="gymnasium, sb3, puffer"):
        hotloop.make_vec("grid/toy", api="rllib")
