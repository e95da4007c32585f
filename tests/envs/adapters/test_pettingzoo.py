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


ATTACK, PASS = 1, 6


def small() -> HotloopParallelEnv:
    return parallel_env("grid/toy", agents=3, max_steps=6, map_size="12x12")


@pytest.mark.parametrize("target", TARGETS)
def test_pettingzoo_finds_nothing_wrong(target: str) -> None:
    parallel_api_test(parallel_env(target), num_cycles=30)
    parallel_seed_test(lambda: parallel_env(target), num_cycles=10)


@pytest.mark.parametrize("target", sorted({*EVERY} - {*TARGETS}))
def test_pettingzoo_finds_nothing_wrong_where_agents_come_and_go(target: str) -> None:
    keys = {"perception": False, "max_births": 40}
    parallel_api_test(parallel_env(target, strength=60.0, **keys), num_cycles=30)
    parallel_seed_test(lambda: parallel_env(target, **keys), num_cycles=10)


def everyone(env: HotloopParallelEnv, action: int) -> dict[str, int]:
    return dict.fromkeys(env.agents, action)


def test_agents_are_named_by_type_and_number_which_none_has_again() -> None:
    env = parallel_env("farm/steady", agents=6, perception=False, max_births=5, strength=150.0)
    env.reset(seed=4)
    assert env.agents == ["system_0", "independent_1", "control_2", "system_3", "independent_4", "control_5"]
    assert len(env.possible_agents) == 6 + 3 * 5
    dead: set[str] = set()
    born: list[str] = []
    while env.agents:
        before = env.agents
        seen, rewards, ended, cut, infos = env.step(everyone(env, ATTACK))
        new = [agent for agent in env.agents if agent not in before]
        assert seen.keys() == rewards.keys() == ended.keys() == cut.keys() == infos.keys() == {*before, *new}
        assert not {*env.agents} & dead
        gone = {agent for agent in before if ended[agent]}
        assert gone == {*before} - {*env.agents}
        assert all(rewards[agent] < -5 and not seen[agent].any() for agent in gone)
        assert all(rewards[agent] == 0 and seen[agent].any() for agent in new)
        dead, born = dead | gone, born + new
        if len(env.agents) == 1:
            break
    assert sorted(int(agent.rpartition("_")[2]) for agent in born) == [6, 7, 8, 9, 10]
    assert {*born} <= {*env.possible_agents}
    assert env._batch.counters["coverage.failed.barred"] > 0


def test_a_limit_ends_those_who_live_and_death_those_who_do_not() -> None:
    env = parallel_env("farm/dev", perception=False, nodes=0, start_resources=0.0, max_steps=10)
    env.reset(seed=1)
    for _ in range(9):
        assert not any(env.step(everyone(env, PASS))[2].values())
    _, _, ended, cut, _ = env.step(everyone(env, PASS))
    assert all(ended.values())
    assert not any(cut.values())
    env = parallel_env("farm/dev", perception=False, max_steps=2)
    env.reset(seed=1)
    env.step(everyone(env, PASS))
    _, _, ended, cut, _ = env.step(everyone(env, PASS))
    assert not any(ended.values())
    assert all(cut.values())
    assert env.agents == []


def test_agents_that_come_and_go_need_an_end_of_names() -> None:
    with pytest.raises(InputError, match="give max_births=N"):
        parallel_env("farm/dev", max_births=0)


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
