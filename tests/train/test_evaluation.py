import numpy as np
import pytest
import torch
from support.trainings import small

import hotloop
from hotloop.core.errors import InputError
from hotloop.train.evaluation import PolicyRunner, evaluate, own_batch
from hotloop.train.settings import EvalSettings
from hotloop.train.trainer import Trainer

FEW = EvalSettings(episodes=5, steps=15)


def trainer(**words: object) -> Trainer:
    made = small(**words)
    return Trainer(made.open(), made.train)


def test_an_evaluation_is_the_same_every_time_and_follows_the_policy() -> None:
    mine = trainer()
    first, again = (evaluate(mine, mine.batch.spec, FEW) for _ in range(2))
    assert first == again
    assert len(first.returns) == 5
    for _ in range(3):
        mine.update()
    assert evaluate(mine, mine.batch.spec, FEW) != first


def test_training_does_not_notice_that_it_was_evaluated() -> None:
    alone, seen = trainer(), trainer()
    for _ in range(3):
        evaluate(seen, seen.batch.spec, FEW)
        assert alone.update() == seen.update()
    assert alone.batch.digest().tolist() == seen.batch.digest().tolist()


def test_an_evaluation_has_seeds_of_its_own() -> None:
    mine = trainer()
    other = EvalSettings(episodes=5, steps=15, seed=5)
    assert evaluate(mine, mine.batch.spec, other) != evaluate(mine, mine.batch.spec, FEW)
    with pytest.raises(InputError, match=r"train\.eval\.seed=42"):
        evaluate(mine, mine.batch.spec, EvalSettings(seed=42))


def test_the_envs_of_an_evaluation_are_made_from_its_seed() -> None:
    mine = trainer(threads=2, time_max=77)
    own = own_batch(mine.batch.spec, EvalSettings(seed=5), 3)
    assert (own.spec.seed, own.spec.num_envs, own.spec.threads) == (5, 3, 2)
    assert own.spec.parameters == mine.batch.spec.parameters


def test_every_env_plays_its_share_and_what_lasts_too_long_is_cut_off() -> None:
    mine = trainer()
    played = evaluate(mine, mine.batch.spec, EvalSettings(episodes=130, steps=3))
    counts = np.bincount([episode.env for episode in played.episodes])
    assert (counts.sum(), counts.max() - counts.min()) == (130, 1)
    assert max(episode.length for episode in played.episodes) == 3
    assert any(episode.cut for episode in played.episodes)


def test_the_worlds_own_measures_are_means_over_the_episodes() -> None:
    mine = trainer()
    played = evaluate(mine, mine.batch.spec, FEW)
    profits = [episode.outcomes["profit"] for episode in played.episodes]
    assert played.outcomes["profit"] == pytest.approx(sum(profits) / 5)
    assert played.interval is None
    assert played.mean_length == pytest.approx(sum(episode.length for episode in played.episodes) / 5)


def test_an_endless_world_is_cut_off() -> None:
    mine = trainer(target="grid/toy", agents=2, train__minibatch_size=64, train__embedding=4)
    played = evaluate(mine, mine.batch.spec, EvalSettings(episodes=2))
    assert {episode.length for episode in played.episodes} == {1000}


def test_the_greedy_actor_takes_the_most_likely_action() -> None:
    mine = trainer(train__norm_obs="false")
    batch = hotloop.make("prospector/short", num_envs=4, seed=3)
    batch.reset()
    chosen = PolicyRunner(mine, batch, seed=1, greedy=True).choose()
    logits = mine.network(torch.from_numpy(batch.observations).reshape(4, -1))[0]
    assert chosen[:, 0].tolist() == logits.argmax(-1).tolist()


def test_actions_are_drawn_from_the_policy() -> None:
    mine = trainer()
    batch = hotloop.make("prospector/short", num_envs=2000, seed=3)
    batch.reset()
    drawn = PolicyRunner(mine, batch, seed=1).choose()
    counts = np.bincount(drawn[:, 0], minlength=69)
    assert (counts > 0).sum() > 60  # a fresh policy is nearly uniform
    assert counts.max() < 100


def test_a_memory_begins_anew_where_an_episode_ended_and_nowhere_else() -> None:
    mine = trainer(train__lstm=8)
    batch = hotloop.make("prospector/short", num_envs=3, seed=3)
    batch.reset()
    actor = PolicyRunner(mine, batch, seed=1)
    actor.choose()
    actor.note([1])
    fresh = PolicyRunner(mine, batch, seed=1)
    with torch.inference_mode():
        rows = actor._scaled[None]
        went_on, began = (
            mine.student(rows, each._memory, each._begins[None])[0][0] for each in (actor, fresh)
        )
    same = [torch.equal(one, other) for one, other in zip(went_on, began, strict=True)]
    assert same == [False, True, False]
