"""Self-play: who has which seat, what is learned from, and whose gain is whose loss."""

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import hotloop
from hotloop.core.errors import InputError
from hotloop.envs.batch import Batch
from hotloop.train.opponents import Opponents
from hotloop.train.ppo import gae
from hotloop.train.settings import TrainSettings
from hotloop.train.trainer import Trainer

SMALL = {
    "torch_threads": 1,
    "num_steps": 16,
    "minibatch_size": 64,
    "update_epochs": 1,
    "embedding": 16,
    "hidden": (16,),
}


def games(**given: object) -> Batch:
    return hotloop.make("cards/mirror", **{"num_envs": 16, "villain": "none", "seed": 3, **given})


def trainer(
    *opponents: str, batch: Batch | None = None, resume: Path | None = None, **given: object
) -> Trainer:
    settings = TrainSettings(**{**SMALL, "opponents": opponents, **given})  # type: ignore[arg-type]
    return Trainer(batch or games(), settings, resume=resume)


def test_what_one_wins_the_other_loses() -> None:
    rewards = torch.tensor([[0.0], [0.0], [1.0]])
    values = torch.tensor([[0.1], [0.2], [0.3]])
    turns = torch.tensor([[-1.0], [1.0], [-1.0]])
    ends = torch.tensor([[0.0], [0.0], [1.0]])
    found = gae(rewards, values, ends, torch.tensor([9.0]), gamma=1.0, gae_lambda=1.0, turns=turns)
    torch.testing.assert_close(found[:, 0], torch.tensor([-1.0 - 0.1, 1.0 - 0.2, 1.0 - 0.3]))


def test_an_advantage_is_that_of_each_player_by_itself() -> None:
    """Seats in any order: with lambda 1 what counts is one's own result, whoever chose in between."""
    random = np.random.default_rng(1)
    seats = random.integers(2, size=12)
    values = torch.from_numpy(random.normal(size=(12, 1)).astype(np.float32))
    rewards, ends = torch.zeros(12, 1), torch.zeros(12, 1)
    rewards[-1], ends[-1] = 1.0, 1.0
    turns = torch.tensor([1.0 if a == b else -1.0 for a, b in pairwise(seats.tolist())] + [1.0])
    found = gae(rewards, values, ends, torch.zeros(1), gamma=1.0, gae_lambda=1.0, turns=turns[:, None])
    results = torch.tensor([1.0 if seat == seats[-1] else -1.0 for seat in seats])
    torch.testing.assert_close(found[:, 0], results - values[:, 0])


def test_only_what_the_learner_chose_is_learned_from() -> None:
    learning = trainer("simple")
    kept = learning.algorithm.collector.collect(learning.student)
    assert kept.alive is not None
    assert 0.2 < kept.alive.float().mean() < 0.8
    alone = trainer("self")
    everything = alone.algorithm.collector.collect(alone.student).alive
    assert everything is not None
    assert everything.all()


@pytest.mark.parametrize("name", ["simple", "past"])
def test_the_other_seat_is_played_by_whom_was_asked_for(name: str) -> None:
    learning = trainer(name)
    opponents, batch = learning.algorithm.opponents, learning.batch
    assert opponents is not None
    opponents.begin(learning.network)
    acting = np.full((16, 1), 7, np.int32)
    theirs = batch.infos["seat"] != opponents.learner
    expected = batch.choose("simple")[theirs].copy()
    seen = torch.from_numpy(batch.observations.reshape(16, -1))
    opponents.answer(0, seen, acting)
    assert (acting[~theirs] == 7).all()
    assert batch.masks is not None
    assert batch.masks[np.flatnonzero(theirs), 0, acting[theirs, 0]].all()
    assert name == "past" or acting[theirs].tolist() == expected.tolist()
    assert opponents.mine[0].tolist() == (~theirs).tolist()


def finished(opponents: Opponents) -> Any:
    """Return a rollout with what the opponents write into it."""
    rollout = SimpleNamespace()
    opponents.finish(rollout)  # type: ignore[arg-type]
    return rollout


def play(opponents: Opponents, rollouts: int) -> None:
    """Play at random for so many rollouts."""
    for _ in range(rollouts):
        for step in range(opponents.settings.num_steps):
            acting = opponents.batch.choose("random").copy()
            opponents.answer(step, torch.zeros(16, 1), acting)
            opponents.batch.step(acting)
            opponents.note(step)


def test_seats_change_with_every_game_and_results_are_the_learners() -> None:
    learning = trainer("passive")
    opponents = learning.algorithm.opponents
    assert opponents is not None
    first = opponents.learner.copy()
    play(opponents, 12)
    assert (opponents.learner != first).any()
    assert opponents.shares_won()["won.passive"] > 0.9
    assert set(finished(opponents).turns.unique().tolist()) <= {-1.0, 1.0}


def test_earlier_selves_are_kept_the_last_ones_only() -> None:
    learning = trainer("past", past_every=2, past_kept=2)
    opponents = learning.algorithm.opponents
    assert opponents is not None
    for _ in range(7):
        learning.update()
    assert len(opponents.past) == 2
    latest = opponents.past[-1]["value.weight"]
    assert not torch.equal(latest, learning.network.state_dict()["value.weight"])
    assert not torch.equal(latest, opponents.past[0]["value.weight"])


def test_a_run_with_opponents_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    keys = {"past_every": 1, "total_timesteps": 10_000, "supervised_steps": 300}
    whole = trainer("self", "past", "simple", **keys)
    whole.update()
    path = whole.save(tmp_path)
    expected = [dict(whole.update().losses) for _ in range(2)]
    resumed = trainer("self", "past", "simple", resume=path, **keys)
    assert [dict(resumed.update().losses)["value"] for _ in range(2)] == [each["value"] for each in expected]


def test_a_run_may_go_on_against_fewer(tmp_path: Path) -> None:
    many = trainer("self", "past", "simple", "first")
    many.update()
    resumed = trainer("simple", resume=many.save(tmp_path))
    assert resumed.algorithm.opponents is not None
    assert not resumed.algorithm.opponents.opponent.any()
    for _ in range(3):
        resumed.update()


@pytest.mark.parametrize(
    ("target", "keys", "opponents", "message"),
    [
        ("cards/mirror", {}, ("simple",), "is played inside a step; add villain=none"),
        ("cards/mirror", {"villain": "none"}, ("simpel",), "did you mean simple"),
        ("prospector", {}, ("self",), "played against nobody"),
    ],
)
def test_opponents_that_cannot_sit_down_are_refused(
    target: str, keys: dict[str, object], opponents: tuple[str, ...], message: str
) -> None:
    batch = hotloop.make(target, num_envs=16, **keys)
    with pytest.raises(InputError, match=message):
        Trainer(batch, TrainSettings(**{**SMALL, "opponents": opponents}))  # type: ignore[arg-type]
