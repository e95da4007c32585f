import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

import hotloop
from hotloop.core.errors import InputError
from hotloop.core.registry import presets, worlds
from hotloop.envs.adapters.pettingzoo import HotloopParallelEnv, parallel_env
from hotloop.envs.batch import OrderError

EVERY = [found.target for world in worlds().values() for found in presets(world)]
TARGETS = [target for target in EVERY if not hotloop.make(target, num_envs=1).spec.has_empty_rows]


def small() -> HotloopParallelEnv:
    return parallel_env("grid/toy", agents=3, max_steps=6, map_size="12x12")


@pytest.mark.parametrize("target", TARGETS)
def test_pettingzoo_finds_nothing_wrong(target: str) -> None:
    parallel_api_test(parallel_env(target), num_cycles=30)
    parallel_seed_test(lambda: parallel_env(target), num_cycles=10)


@pytest.mark.parametrize("target", sorted({*EVERY} - {*TARGETS}))
def test_a_world_whose_agents_come_and_go_is_refused(target: str) -> None:
    with pytest.raises(InputError, match="come and go"):
        parallel_env(target)


def test_pettingzoo_finds_nothing_wrong_where_episodes_end() -> None:
    parallel_api_test(small(), num_cycles=30)
    parallel_seed_test(small, num_cycles=10)


def test_it_gives_each_agent_its_row_of_the_batch() -> None:
    env = small()
    batch = hotloop.make(
        "grid/toy", agents=3, max_steps=6, map_size="12x12", num_envs=1, autoreset=False, seed=1
    )
    env.reset(seed=9)
    batch.reset([9])
    for step in range(6):
        chosen = [1 + step, 2, 8]
        seen, rewards, ended, cut, infos = env.step(dict(zip(env.possible_agents, chosen, strict=True)))
        batch.step(np.array([chosen], np.int32))
        for index, agent in enumerate(env.possible_agents):
            assert np.array_equal(seen[agent], batch.observations[0, index])
            assert rewards[agent] == batch.rewards[0, index]
            assert infos[agent]["success"] == batch.infos["success"][0, index]
            assert infos[agent]["episode_length"] == step + 1
            assert (ended[agent], cut[agent]) == (False, step == 5)
    assert env.agents == []
    with pytest.raises(OrderError, match="call reset"):
        env.step({})


@pytest.mark.parametrize(
    ("actions", "said"),
    [
        ({"agent_0": 1, "agent_1": 1}, "agent_2 has no action"),
        ({"agent_0": 1, "agent_1": 9, "agent_2": 0}, "action 9 of agent_1"),
        ({"agent_0": 1, "agent_1": 0.5, "agent_2": 0}, "action 0.5 of agent_1"),
    ],
)
def test_actions_that_do_not_fit_are_refused(actions: dict[str, int], said: str) -> None:
    env = small()
    env.reset(seed=0)
    with pytest.raises(InputError, match=said):
        env.step(actions)
