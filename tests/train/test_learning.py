"""Smaller versions of the documented runs: each learns something, in seconds."""

from collections.abc import Iterator
from contextlib import closing
from statistics import fmean
from typing import Any

import pytest
import torch

import hotloop
from hotloop.envs.batch import Batch
from hotloop.envs.tapes import Episodes
from hotloop.stats.summary import mean_interval
from hotloop.train.settings import TrainSettings
from hotloop.train.trainer import Trainer
from hotloop.train.windows import Windows

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def played(batch: Batch, player: str, steps: int) -> list[float]:
    """Returns of the episodes that a player finishes in so many steps."""
    batch.reset()
    episodes = Episodes(batch)
    ended = [episode for _ in range(steps) for episode in episodes.step(batch.choose(player))]
    return [episode.return_per_agent for episode in ended]


def trained(batch: Batch, updates: int, **given: Any) -> tuple[Trainer, Windows]:
    windows = Windows(batch)
    trainer = Trainer(batch, TrainSettings(**given), watchers=[windows])
    for _ in range(updates):
        trainer.update()
    return trainer, windows


def test_prospecting_comes_to_more_than_the_greedy_players() -> None:
    with closing(hotloop.make("prospector", num_envs=64)) as batch:
        greedy = mean_interval(played(batch, "greedy", 1500))
    with closing(hotloop.make("prospector", num_envs=64)) as batch:
        settings = {"num_steps": 32, "minibatch_size": 512, "hidden": (64,), "total_timesteps": 200_000}
        trainer, windows = trained(batch, 40, **settings)
        windows.close()
        for _ in range(10):
            trainer.update()
        found = windows.close().mean_return
    assert greedy is not None
    assert found is not None
    assert found > greedy[1] + 20


def test_the_arena_comes_to_more_than_random_play() -> None:
    with closing(hotloop.make("grid/arena", num_envs=32, max_steps=64)) as batch:
        random = mean_interval(played(batch, "random", 640))
    with closing(hotloop.make("grid/arena", num_envs=8, max_steps=64)) as batch:
        settings = {"num_steps": 32, "minibatch_size": 768, "update_epochs": 2, "anneal_lr": False}
        trainer, windows = trained(batch, 30, **settings)
        windows.close()
        for _ in range(10):
            trainer.update()
        found = windows.close().mean_return
    assert random is not None
    assert found is not None
    assert found > 1.5 * random[1]


def test_a_student_comes_to_agree_with_its_teacher_and_ppo_does_not_undo_it() -> None:
    with closing(hotloop.make("grid/guard", num_envs=16)) as batch:
        trainer = Trainer(
            batch,
            TrainSettings(
                num_steps=32,
                minibatch_size=1024,
                embedding=16,
                learning_rate=2e-3,
                supervised_steps=30 * 512,
                fade_steps=6 * 512,
                total_timesteps=45 * 512,
                stagger=200,
            ),
        )
        agreed = [trainer.update().agreement or 0.0 for _ in range(30)]
        early, late = fmean(agreed[:2]), fmean(agreed[-5:])
        while not trainer.finished:
            trainer.update()
        after = trainer.algorithm.collector.collect(trainer.student, trainer.algorithm.teacher).agreement
    assert late > early + 0.15
    assert after is not None
    assert after > early + 0.1
