"""What foreign subjects count and answer."""

import numpy as np
import pytest

from hotloop.core.settings import Target
from hotloop.envs.open import open_target
from hotloop.envs.subject import Subject


def played(target: str, calls: int, /, **given: object) -> Subject:
    subject = open_target(Target(target, given))
    subject.reset()
    subject.started = subject.counters  # type: ignore[attr-defined]
    for actions in subject.draw(np.random.default_rng(0), calls):
        subject.step(actions)
    return subject


def gained(subject: Subject) -> dict[str, int]:
    started = subject.started  # type: ignore[attr-defined]
    return {name: count - started[name] for name, count in subject.counters.items()}


@pytest.mark.parametrize("target", ["support.theirs:make", "support.theirs:plain"])
def test_an_episode_that_ends_is_reset_in_the_same_call(target: str) -> None:
    subject = played(target, 25)
    assert gained(subject) == {"foreign_steps": 25, "env_steps": 25, "agent_steps": 25, "resets": 2}


@pytest.mark.parametrize("vector", ["sync", "async"])
def test_a_call_that_only_resets_an_env_is_no_step_of_it(vector: str) -> None:
    subject = played("support.theirs:make", 24, num_envs=3, vector=vector)
    subject.close()
    # Each env: ten steps, a reset, ten steps, a reset, two steps.
    assert gained(subject) == {
        "foreign_steps": 66,
        "env_steps": 66,
        "agent_steps": 66,
        "resets": 6,
        "reset_steps": 6,
    }


def test_our_vector_env_resets_in_the_same_step_and_has_no_reset_steps() -> None:
    given = {"num_envs": 3, "vector": "own", "agents": 1, "max_steps": 10, "map_size": "12x12"}
    subject = played("gym:hotloop/grid-toy-v0", 24, **given)
    assert gained(subject)["env_steps"] == 72
    assert gained(subject)["resets"] == 6
    assert gained(subject)["reset_steps"] == 0


def test_agent_steps_are_those_of_living_agents() -> None:
    given = {"target": "grid/toy", "agents": 3, "max_steps": 10, "map_size": "12x12"}
    subject = played("hotloop.envs.adapters.pettingzoo:parallel_env", 25, **given)
    assert gained(subject) == {"foreign_steps": 25, "env_steps": 25, "agent_steps": 75, "resets": 2}


def test_a_turn_based_game_is_played_by_its_rules_and_counted_by_turns() -> None:
    subject = played("pettingzoo:classic.tictactoe_v3", 60)
    counts = gained(subject)
    assert counts["env_steps"] == counts["agent_steps"] == 60
    assert 60 // 11 <= counts["resets"] <= 60 // 5


def test_rows_of_a_puffer_env_are_agent_steps() -> None:
    given = {"target": "grid/toy", "agents": 3, "max_steps": 10, "map_size": "12x12"}
    subject = played("hotloop.envs.adapters.pufferlib:PufferRows", 25, **given)
    assert gained(subject) == {"foreign_steps": 25, "env_steps": 25, "agent_steps": 75, "resets": 2}


def test_equal_envs_answer_alike_every_time_and_with_the_same_names() -> None:
    one, other = (open_target(Target("gym:CartPole-v1", {"seed": "3"})) for _ in range(2))
    for subject in (one, other):
        subject.reset()
    names = set(one.answers())
    assert {"observations", "rewards", "terminals", "truncations", "next_observations"} <= names
    for actions in one.draw(np.random.default_rng(0), 60):
        one.step(actions)
        other.step(actions)
        for name, rows in one.answers().items():
            assert rows.shape[0] == 1
            assert np.array_equal(rows, other.answers()[name])
        assert set(one.answers()) == names


def test_what_is_seen_in_parts_is_answered_in_parts() -> None:
    subject = played("support.theirs:parts", 3)
    assert {"observations.near", "observations.far"} <= set(subject.answers())


def test_the_same_seed_draws_the_same_actions() -> None:
    subject = open_target(Target("support.theirs:make", {}))
    first, second = (subject.draw(np.random.default_rng(4), 50) for _ in range(2))
    assert list(first) == list(second)
    assert set(first) == {0, 1, 2, 3}
