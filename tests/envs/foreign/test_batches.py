"""Batched objects, teams, models that only step, and several of what no vector env takes."""

from contextlib import closing
from typing import Any

import gymnasium
import numpy as np
import pytest
from support import batches
from support.replays import replay_both
from support.worded import Worded

from hotloop.core.errors import InputError
from hotloop.core.settings import Target
from hotloop.envs.foreign.training import open_trainable
from hotloop.envs.open import open_target
from hotloop.envs.subject import Subject
from hotloop.lab.bench import bench
from hotloop.lab.measure.loop import Rounds

ROUNDS = Rounds(count=6, iterations=20, warmup=20, box_iterations=False)


def played(name: str, calls: int, /, **keys: object) -> Subject:
    subject = open_target(Target(name if ":" in name else f"support.batches:{name}", keys))
    subject.reset()
    for actions in subject.draw(np.random.default_rng(0), calls):
        subject.step(actions)
    return subject


def counts(subject: Subject) -> tuple[int, int, int]:
    counted = subject.counters
    return counted["env_steps"], counted["agent_steps"], counted["resets"]


def test_an_object_with_several_envs_is_a_batch() -> None:
    subject = played("Batched", 20)
    assert counts(subject) == (120, 120, 6 + 12)
    assert subject.spec.num_envs == 6
    assert subject.answers()["observations"].shape == (6,)


def test_a_vector_env_may_keep_something_other_than_a_list_as_its_envs() -> None:
    subject = played("PooledVector", 20)
    assert counts(subject) == (40, 40, 2)
    assert subject.generators() == [{}]


def test_an_object_with_agents_counts_them() -> None:
    subject = played("Team", 12)
    assert counts(subject) == (12, 240, 3)
    assert bench(Target("support.batches:Team"), ROUNDS).work.agent_steps == 6 * 20 * 20


@pytest.mark.parametrize("processes", [False, True])
def test_a_vec_env_of_stable_baselines_plays_legally_and_counts(processes: bool) -> None:
    subject = played("sb3", 21, processes=processes)
    assert counts(subject) == (42, 42, 2 + 6)
    assert subject.faults() == ()
    subject.close()


def test_agents_of_an_env_of_gymnasiums_have_a_reward_each() -> None:
    subject = played("Foragers", 12)
    assert counts(subject) == (12, 24, 3)
    assert subject.faults() == ()
    assert bench(Target("support.batches:Foragers"), ROUNDS).work.agent_steps == 2 * 6 * 20


def test_an_env_of_deepminds_interface_is_one_of_gymnasiums() -> None:
    subject = played("Pendulums", 13)
    assert counts(subject) == (13, 13, 3)
    assert subject.faults() == ()
    ends = []
    for actions in subject.draw(np.random.default_rng(1), 12):
        subject.step(actions)
        told = subject.answers()
        ends += [(told["terminals"].item(), told["truncations"].item())]
    assert sorted(each for each in ends if any(each)) == [(False, True), (True, False)]
    sides = [open_target(Target("support.batches:Pendulums", {"seed": seed})) for seed in (5, 5, 6)]
    assert replay_both(*sides[:2], steps=20).difference is None
    assert replay_both(open_target(Target("support.batches:Pendulums", {"seed": 5})), sides[2]).difference


def test_several_of_them_are_a_vector_env_and_can_be_trained_on() -> None:
    keys = {"num_envs": 2}
    assert played("Pendulums", 6, **keys).spec.described.variant["interface"] == "gymnasium vector"
    with closing(open_trainable(Target("support.batches:Pendulums", keys))) as batch:
        batch.reset()
        assert batch.observations.shape == (2, 3 + 4)


def test_a_model_that_only_steps_is_made_again_where_an_episode_begins() -> None:
    batches.Model.made = 0
    subject = played("Model", 20)
    assert counts(subject) == (20, 20, 3)
    assert batches.Model.made == 3
    assert subject.answers()["infos.wealth"] > 0


def test_what_makes_a_model_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = open_target(Target("support.batches:Model"))
    monkeypatch.setattr("hotloop.envs.callables.find", pytest.fail)
    subject.reset()
    for _ in range(20):
        subject.step(None)
    assert counts(subject) == (20, 20, 3)


def test_a_model_is_benched_once_made_and_compared_by_its_numbers() -> None:
    batches.Model.made = 0
    bench(Target("support.batches:Model"), Rounds(count=1, iterations=2, warmup=2, box_iterations=False))
    assert batches.Model.made <= 1 + 20 // 8
    models = [open_target(Target(f"support.batches:{name}")) for name in ("Model", "Model", "Other")]
    assert replay_both(models[0], models[1], steps=12).difference is None
    sides = [open_target(Target(f"support.batches:{name}")) for name in ("Model", "Other")]
    found = replay_both(*sides, steps=12).difference
    assert "infos.wealth" in str(found)


def test_what_plays_itself_is_stepped_without_an_action_and_reset_by_itself() -> None:
    subject = played("Ecology", 20)
    assert counts(subject) == (20, 20, 3)
    assert subject.answers()["infos.age"] == 20 % 8
    assert counts(played("Clockwork", 20)) == (20, 20, 1)
    assert bench(Target("support.batches:Ecology"), ROUNDS).work.env_steps == 6 * 20


def test_what_plays_itself_begins_with_its_seed_and_may_be_played_all_the_same() -> None:
    sides = [open_target(Target("support.batches:Ecology", {"seed": seed})) for seed in ("1", "2")]
    assert replay_both(*sides, steps=12).difference is not None
    same = [open_target(Target("support.batches:Ecology", {"seed": "1"})) for _ in range(2)]
    assert replay_both(*same, steps=12).difference is None
    subject = played("Ecology", 2)
    subject.step(5)
    assert subject.env.pushed == 5  # type: ignore[attr-defined]
    assert subject.unfold(subject.fold([5])[0]) == 5
    assert subject.unfold(subject.fold([None])[0]) is None


@pytest.mark.parametrize(("keys", "equal"), [({}, False), ({"reseed": "true"}, True)])
def test_an_env_that_draws_its_seeds_is_given_them(keys: dict[str, Any], equal: bool) -> None:
    sides = [open_target(Target("support.batches:Forgetful", keys)) for _ in range(2)]
    assert (replay_both(*sides, steps=30).difference is None) is equal
    subject = played("Forgetful", 20, **keys)
    before = subject.observation
    subject.reset()
    for _ in range(20):
        subject.step(0)
    assert bool((subject.observation == before).all()) is equal


def test_its_episodes_are_not_all_the_same() -> None:
    subject = open_target(Target("support.batches:Forgetful", {"reseed": True}))
    begun = [subject.reset() or subject.observation.item()]
    begun += [played("Forgetful", 8 * episodes, reseed=True).observation.item() for episodes in (1, 2)]
    assert len(set(begun)) == 3


def test_envs_side_by_side_have_seeds_of_their_own() -> None:
    subject = open_target(Target("support.batches:Ecology", {"num_envs": 3, "seed": 5}))
    subject.reset()
    states = {each["random"].getstate() for each in subject.generators()}
    assert len(states) == 3


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"num_envs": 2, "reseed": True}, "what is reset one by one"),
        ({"reseed": "3"}, "expected true or false"),
    ],
)
def test_seeds_are_for_envs_whose_episodes_begin_here(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        open_target(Target("support.batches:Forgetful", keys))


@pytest.mark.parametrize(
    ("name", "keys", "expected"),
    [
        ("pettingzoo:classic.tictactoe_v3", {"num_envs": 4, "vector": "sync"}, (24, 24)),
        ("pettingzoo:sisl.pursuit_v5", {"num_envs": 2, "n_pursuers": 3}, (12, 36)),
        ("support.masked:both", {"num_envs": 3}, (18, 36)),
        ("support.batches:Model", {"num_envs": 3}, (18, 18)),
        ("support.batches:Ecology", {"num_envs": 3}, (18, 18)),
        ("support.theirs:plain", {"num_envs": 2}, (12, 12)),
    ],
)
def test_several_of_anything_are_several(name: str, keys: dict[str, Any], expected: tuple[int, int]) -> None:
    subject = played(name, 6, **keys)
    assert counts(subject)[:2] == expected
    assert subject.spec.num_envs == keys["num_envs"]
    actions = [subject.settle(each) for each in subject.draw(np.random.default_rng(1), 2)]
    kept = subject.fold(actions)
    assert kept.shape[:2] == (2, keys["num_envs"])
    subject.step(subject.unfold(kept[0]))


def test_workers_of_what_gymnasium_does_not_know_are_refused() -> None:
    with pytest.raises(InputError, match="envs of PettingZoo take vector=sync"):
        open_target(Target("pettingzoo:classic.tictactoe_v3", {"num_envs": 2, "vector": "async"}))


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("array", r"a reward that is \(3,\): expected a number.*batches.py:\d+ in step"),
        ("nothing", r"a reward that is NoneType: expected a number.*batches.py:\d+ in step"),
        ("flags", r"terminated as an array of \(3,\): expected True or False.*batches.py:\d+ in step"),
        ("leaves", r"raised: SystemExit: 3 .*batches.py:\d+ in step"),
    ],
)
def test_a_mistake_of_theirs_is_said_with_its_line(what: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        bench(Target("support.batches:bad_reward", {"what": what}), ROUNDS)


def test_observations_that_no_shared_memory_holds_come_through_pipes() -> None:
    gymnasium.register("Worded-v0", entry_point=Worded, disable_env_checker=True)
    try:
        for name in ("support.worded:Worded", "gym:Worded-v0"):
            with closing(played(name, 3, num_envs=2, vector="async")) as subject:
                assert counts(subject)[:2] == (6, 6)
    finally:
        del gymnasium.registry["Worded-v0"]
