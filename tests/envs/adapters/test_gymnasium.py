import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete, MultiDiscrete
from gymnasium.utils.env_checker import check_env

import hotloop
from hotloop.core.errors import InputError
from hotloop.core.registry import presets, worlds
from hotloop.envs.adapters import id_of, register_envs
from hotloop.envs.batch import OrderError

IDS = register_envs()
SHORT = {"agents": 1, "max_steps": 12, "map_size": "12x12"}


def test_every_preset_of_every_world_is_registered_once() -> None:
    assert list(IDS) == [id_of(found) for world in worlds().values() for found in presets(world)]
    assert "hotloop/grid-toy-v0" in IDS
    assert register_envs() == IDS


@pytest.mark.filterwarnings("ignore:.*value is -?infinity")  # a world that declares no bounds
@pytest.mark.parametrize("name", IDS)
def test_gymnasium_finds_nothing_wrong(name: str) -> None:
    check_env(gymnasium.make(name).unwrapped)


def test_gymnasium_finds_nothing_wrong_with_one_agent() -> None:
    env = gymnasium.make("hotloop/grid-toy-v0", **SHORT)
    check_env(env.unwrapped)
    assert env.action_space == Discrete(9)
    assert env.observation_space.shape == (200, 3)


def test_several_agents_are_played_as_a_whole() -> None:
    env = gymnasium.make("hotloop/grid-guard-v0")
    batch = hotloop.make("grid/guard", num_envs=1, autoreset=False)
    assert env.action_space == MultiDiscrete([12] * 8)
    env.reset(seed=3)
    batch.reset([3])
    total = 0.0
    for _ in range(400):
        actions = batch.choose("teacher")
        seen, reward, _, _, info = env.step(actions[0])
        batch.step(actions)
        assert np.array_equal(seen, batch.observations[0])
        assert np.array_equal(info["agent_rewards"], batch.rewards[0])
        assert reward == pytest.approx(float(batch.rewards[0].sum()))
        total += reward
    assert total > 0


def test_a_seed_decides_the_episode_and_those_after_it() -> None:
    env = gymnasium.make("hotloop/grid-toy-v0", **SHORT)
    seen = [[env.reset(seed=5)[0], env.reset()[0], env.reset()[0]] for _ in range(2)]
    assert all(np.array_equal(a, b) for a, b in zip(*seen, strict=True))
    assert not np.array_equal(seen[0][0], seen[0][1])
    other = gymnasium.make("hotloop/grid-toy-v0", **SHORT)
    assert not np.array_equal(other.reset()[0], gymnasium.make("hotloop/grid-toy-v0", **SHORT).reset()[0])


def test_an_episode_ends_once_and_has_to_be_reset() -> None:
    env = gymnasium.make("hotloop/grid-toy-v0", **SHORT)
    env.reset(seed=0)
    ends = [env.step(0)[2:4] for _ in range(12)]
    assert ends == [(False, False)] * 11 + [(False, True)]
    with pytest.raises(OrderError, match="reset"):
        env.step(0)


def test_what_is_returned_is_the_callers_to_keep() -> None:
    env = gymnasium.make("hotloop/grid-toy-v0", **SHORT)
    first, _ = env.reset(seed=0)
    kept = first.copy()
    for _ in range(5):
        env.step(env.action_space.sample())
    assert np.array_equal(first, kept)


@pytest.mark.parametrize("action", [9, -1, 0.5, [1, 2]])
def test_an_action_outside_its_space_is_refused(action: object) -> None:
    env = gymnasium.make("hotloop/grid-toy-v0", disable_env_checker=True, **SHORT)
    env.reset(seed=0)
    with pytest.raises(InputError, match="does not fit: expected Discrete"):
        env.step(action)


@pytest.mark.parametrize("key", ["num_envs", "autoreset", "seed"])
def test_what_gymnasium_decides_cannot_be_given_twice(key: str) -> None:
    with pytest.raises(InputError, match=f"leave out {key}"):
        gymnasium.make("hotloop/grid-toy-v0", **{key: 1})


@pytest.mark.parametrize(
    "imports",
    [
        "gymnasium, hotloop",
        "hotloop, gymnasium",
        "importlib.util, hotloop; importlib.util.find_spec('gymnasium'); import gymnasium",
    ],
)
def test_ids_are_there_whatever_is_imported_first(imports: str) -> None:
    script = f"import {imports}; print(gymnasium.make('hotloop/grid-toy-v0').spec.id)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "hotloop/grid-toy-v0", done.stderr


def test_importing_hotloop_does_not_import_gymnasium() -> None:
    script = "import hotloop, sys; hotloop.make('grid/toy'); sys.exit('gymnasium' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.slow
def test_stable_baselines_trains_on_it() -> None:
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    pytest.importorskip("torch").set_num_threads(1)
    env = gymnasium.make("hotloop/grid-toy-v0", **SHORT)
    learner = stable_baselines3.PPO(
        "MlpPolicy", env, n_steps=500, batch_size=100, n_epochs=2, seed=0, device="cpu"
    )
    before = [weights.detach().clone() for weights in learner.policy.parameters()]
    learner.learn(2_000)
    assert learner.num_timesteps == 2_000
    assert len(learner.ep_info_buffer) == 100
    assert {episode["l"] for episode in learner.ep_info_buffer} == {12}
    assert any((a != b).any() for a, b in zip(before, learner.policy.parameters(), strict=True))
