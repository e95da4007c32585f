"""Games against somebody as PettingZoo's AEC envs."""

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, seed_test

from hotloop.core.errors import InputError
from hotloop.envs.adapters.gymnasium import HotloopEnv
from hotloop.envs.adapters.pettingzoo import HotloopAECEnv, aec_env


@pytest.mark.filterwarnings("ignore")
def test_pettingzoos_own_tests_pass() -> None:
    api_test(aec_env("cards/mirror", max_decisions=60), num_cycles=80)
    seed_test(lambda: aec_env("cards/keywords", max_decisions=60), num_cycles=40)


def play(env: HotloopAECEnv, seed: int) -> tuple[dict[str, float], set[str]]:
    """A game by random legal choices: what each earned, and who chose."""
    env.reset(seed=seed)
    earned, chose = dict.fromkeys(env.possible_agents, 0.0), set()
    random = np.random.default_rng(seed)
    for agent in env.agent_iter():
        _, reward, over, cut, info = env.last()
        earned[agent] += reward
        legal = np.flatnonzero(info["action_mask"]) if not (over or cut) else ()
        chose.add(agent)
        env.step(None if over or cut else int(random.choice(legal)))
    return earned, chose


def test_a_game_is_played_by_both_and_won_by_one() -> None:
    env = aec_env("cards/mirror")
    for seed in range(5):
        earned, chose = play(env, seed)
        assert chose == {"agent_0", "agent_1"}
        assert sorted(earned.values()) == [-1.0, 1.0]


def test_a_world_that_is_no_game_against_somebody_is_refused() -> None:
    with pytest.raises(InputError, match="use parallel_env"):
        aec_env("grid/toy")


def test_an_action_that_does_not_exist_is_refused() -> None:
    env = aec_env("cards/mirror")
    env.reset(seed=1)
    with pytest.raises(InputError, match="expected 0 to 19"):
        env.step(20)


@pytest.mark.filterwarnings("ignore:.*A Box observation space m")
def test_gymnasium_plays_against_a_villain_inside() -> None:
    env = HotloopEnv("cards/keywords", villain="simple")
    check_env(env, skip_render_check=True)
    env.reset(seed=4)
    over, random = False, np.random.default_rng(4)
    while not over:
        masks = env.action_masks()
        assert masks.sum() > 1
        _, reward, over, _, _ = env.step(int(random.choice(np.flatnonzero(masks))))
    assert reward in (-1.0, 0.0, 1.0)
