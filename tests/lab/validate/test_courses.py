import numpy as np
import pytest

import hotloop
from hotloop.core.settings import Target
from hotloop.envs.open import open_target
from hotloop.lab.validate.match import (
    ADVERSARIAL,
    RESET_ALL,
    RESET_ONE,
    Adversarial,
    actions_of,
    courses_for,
    resets_before,
)


def adversarial(calls: int, **keys: object) -> np.ndarray:
    return np.array(Adversarial(hotloop.make("grid/toy", num_envs=2, agents=3, **keys)).draw(calls))


def test_an_adversarial_tape_has_every_action_of_every_agent_and_some_that_do_not_exist() -> None:
    actions = hotloop.make("grid/toy").spec.num_actions
    drawn = adversarial(4 * actions)
    assert drawn.dtype == np.int32
    for env in range(2):
        for agent in range(3):
            assert set(range(actions)) <= set(drawn[:actions, env, agent].tolist())
    bounds = np.iinfo(np.int32)
    assert {bounds.min, bounds.max, -1, actions} <= set(drawn.reshape(-1).tolist())


def test_a_strict_batch_gets_no_actions_that_it_would_refuse() -> None:
    drawn = adversarial(100, strict=True)
    assert 0 <= drawn.min() <= drawn.max() < hotloop.make("grid/toy").spec.num_actions


def test_drawing_in_pieces_is_drawing_at_once() -> None:
    play = Adversarial(hotloop.make("grid/toy", num_envs=2, agents=3))
    pieces = [*play.draw(13), *play.draw(20)]
    assert np.array(pieces).tobytes() == adversarial(33).tobytes()


def test_an_env_of_somebody_else_s_gets_every_action_there_is_and_no_other() -> None:
    drawn = Adversarial(open_target(Target("gym:CartPole-v1", {}))).draw(5)
    assert drawn == [0, 1, 0, 1, 0]


def test_an_adversarial_tape_begins_envs_anew_one_at_a_time_and_all_at_once() -> None:
    begun = {step: resets_before(ADVERSARIAL, step, 4) for step in range(300)}
    assert [step for step, envs in begun.items() if len(envs) == 1] == list(range(RESET_ONE, 300, RESET_ONE))
    assert [step for step, envs in begun.items() if len(envs) == 4] == [RESET_ALL, 2 * RESET_ALL]
    assert {envs[0] for envs in begun.values() if len(envs) == 1} == {0, 1, 2, 3}


@pytest.mark.parametrize("tape", ["random", "teacher"])
def test_the_other_tapes_begin_anew_after_longer_and_longer_episodes(tape: str) -> None:
    begun = {step: resets_before(tape, step, 3) for step in range(600)}
    assert [step for step, envs in begun.items() if envs] == [64, 128, 256, 512]
    assert begun[64] == begun[512] == [0, 1, 2]


def test_a_player_plays_on_where_an_env_was_begun_anew() -> None:
    batch, other = (hotloop.make("grid/guard", num_envs=2, seed=3) for _ in range(2))
    for each in (batch, other):
        each.reset()
    actions = actions_of("teacher", batch)
    for step in range(30):
        if step == 20:
            batch.reset_many([1])
            other.reset_many([1])
        chosen = next(actions)
        assert chosen.tolist() == other.choose("teacher").tolist()
        batch.step(chosen)
        other.step(chosen)


@pytest.mark.parametrize(
    ("target", "given", "tapes", "keys"),
    [
        ("grid/toy", {}, ["random", "teacher", "adversarial"], {"max_steps": 50}),
        ("grid/toy", {"max_steps": 9}, ["random", "teacher", "adversarial"], {}),
        ("prospector/short", {}, ["random", "greedy", "cautious", "timer", "adversarial"], {"time_max": 150}),
        ("gym:CartPole-v1", {}, ["random", "adversarial"], {}),
    ],
)
def test_a_subject_is_played_by_all_who_can(
    target: str, given: dict[str, object], tapes: list[str], keys: dict[str, object]
) -> None:
    courses = courses_for(open_target(Target(target, given)), Target(target, given))
    assert [course.tape for course in courses] == tapes
    assert courses[-1].keys == keys
    assert sum(course.share for course in courses) == pytest.approx(1)
