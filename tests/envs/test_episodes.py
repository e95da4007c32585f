"""The account of episodes: lengths, returns, and those that are cut off."""

import numpy as np
import pytest

import hotloop
from hotloop.envs.tapes import Episodes


@pytest.mark.parametrize("impl", ["native", "reference"])
def test_an_episode_ends_with_its_world_and_its_return_is_the_sum_of_rewards(impl: str) -> None:
    batch = hotloop.make("grid/arena", num_envs=2, impl=impl, max_steps=150)
    batch.reset()
    episodes = Episodes(batch)
    for _ in range(149):
        assert episodes.step(batch.choose("random")) == []
    before = episodes.returns.copy()
    ended = episodes.step(batch.choose("random"))
    assert [(episode.env, episode.length, episode.cut) for episode in ended] == [
        (0, 150, False),
        (1, 150, False),
    ]
    returns = [episode.return_per_agent for episode in ended]
    assert returns == pytest.approx((before + batch.rewards).mean(axis=1).tolist())
    assert returns == pytest.approx(batch.infos["episode_return"].mean(axis=1).tolist(), abs=1e-5)
    assert max(returns) > 0
    assert not episodes.ages.any()
    assert not episodes.returns.any()


def test_an_endless_episode_is_cut_off_and_the_next_one_begins() -> None:
    batch = hotloop.make("grid/toy", num_envs=3)
    batch.reset()
    first = batch.digest()
    episodes = Episodes(batch, limit=4)
    still = np.zeros((3, 20), np.int32)
    lengths = [[episode.length for episode in episodes.step(still)] for _ in range(8)]
    assert lengths == [[], [], [], [4, 4, 4], [], [], [], [4, 4, 4]]
    assert batch.counters["resets"] == 9
    assert not set(first.tolist()) & set(batch.digest().tolist())


def test_an_episode_that_ends_at_the_limit_was_not_cut_off() -> None:
    batch = hotloop.make("grid/toy", num_envs=1, max_steps=4)
    batch.reset()
    episodes = Episodes(batch, limit=4)
    ended = [episode for _ in range(4) for episode in episodes.step(batch.choose("random"))]
    assert [episode.cut for episode in ended] == [False]
    assert batch.counters["resets"] == 2


def test_what_is_watched_is_kept_when_an_episode_is_cut_off() -> None:
    batch = hotloop.make("farm/dev", num_envs=2, perception=False)
    batch.reset()
    episodes = Episodes(batch, limit=3, watched=["population"])
    for _ in range(3):
        episodes.step(batch.choose("weighted"))
        assert (episodes.told["population"] >= 15).all()
    assert (batch.infos["population"] == 0).all()
