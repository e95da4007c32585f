import importlib.util

import numpy as np
import pytest

from hotloop.core.errors import InputError, SetupError
from hotloop.envs.adapters.pettingzoo import parallel_env
from hotloop.envs.adapters.pufferlib import PufferRows, puffer_env

SMALL = {"agents": 3, "max_steps": 6, "map_size": "12x12"}
HAS_PUFFER = importlib.util.find_spec("pufferlib") is not None


def test_rows_are_the_agents_of_each_env_in_turn() -> None:
    rows = PufferRows("grid/toy", num_envs=2, **SMALL)
    zoo = [parallel_env("grid/toy", **SMALL) for _ in range(2)]
    assert rows.num_agents == 6
    seen, infos = rows.reset(seed=4)
    expected = [zoo[0].reset(seed=4)[0], zoo[1].reset(seed=5)[0]]
    assert infos == []
    assert np.array_equal(seen, [row for one in expected for row in one.values()])
    for step in range(5):
        actions = np.arange(6, dtype=np.int32) + step % 3
        seen, rewards, ended, cut, infos = rows.step(actions)
        given = [
            env.step(dict(zip(env.agents, actions[at : at + 3], strict=True)))
            for env, at in zip(zoo, (0, 3), strict=True)
        ]
        assert np.array_equal(seen, [row for one in given for row in one[0].values()])
        assert rewards.tolist() == [value for one in given for value in one[1].values()]
        assert not (ended | cut).any()


def test_an_env_that_ends_begins_anew_and_says_how_its_episode_went() -> None:
    rows = PufferRows("grid/toy", num_envs=2, **SMALL)
    first = rows.reset(seed=4)[0].copy()
    for _ in range(6):
        seen, _, ended, cut, infos = rows.step(np.zeros(6, np.int32))
    assert cut.all()
    assert not ended.any()
    assert infos[0]["episode_length"] == 6
    assert not np.array_equal(seen, first)
    assert rows.step(np.zeros(6, np.int32))[4] == []


def test_the_callers_buffers_are_written() -> None:
    made = PufferRows("grid/toy", num_envs=2, **SMALL)
    names = ("observations", "rewards", "terminals", "truncations", "masks", "actions")
    buf = {name: np.zeros_like(getattr(made, name)) for name in names}
    rows = PufferRows("grid/toy", num_envs=2, buf=buf, **SMALL)
    rows.reset(seed=4)
    made.reset(seed=4)
    assert np.array_equal(buf["observations"], made.observations)
    assert buf["observations"].any()
    with pytest.raises(InputError, match="buf\\['observations'\\] has the shape"):
        PufferRows("grid/toy", num_envs=3, buf=buf, **SMALL)


@pytest.mark.skipif(HAS_PUFFER, reason="PufferLib is installed")
def test_without_the_package_the_line_that_installs_it_is_said() -> None:
    with pytest.raises(SetupError, match="pip install pufferlib"):
        puffer_env("grid/toy")


@pytest.mark.skipif(not HAS_PUFFER, reason="PufferLib is not installed")
def test_it_is_a_puffer_env_where_the_package_is_installed() -> None:
    env = puffer_env("grid/toy", num_envs=2, **SMALL)
    seen, _ = env.reset(seed=4)
    assert seen.shape == (6, 200, 3)
    assert env.step(np.zeros(6, np.int32))[1].shape == (6,)


def test_rows_that_are_nobodys_are_masked_and_a_death_ends_its_row() -> None:
    rows = PufferRows("farm/dev", num_envs=1, perception=False, strength=150.0)
    rows.reset(seed=2)
    assert rows.masks.sum() == 15
    _, _, ended, _, _ = rows.step(np.full(50, 1, np.int32))
    assert ended.sum() == 15 - rows.masks.sum() > 0
