import gc
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from hotloop.lab.workers import worker
from hotloop.lab.workers.worker import EnvSubject, answers_to, digest, hashes, turn


@pytest.fixture(autouse=True)
def collector_as_it_was() -> Iterator[None]:
    """What serves has a process of its own, and switches the collector off for good."""
    yield
    gc.unfreeze()
    gc.enable()


class Plain:
    """An env as simple as can be; its answers are whatever `tell` makes of its steps."""

    actions: Sequence[Any] = ("left", "right")

    def __init__(self, tell: Any = lambda steps: steps) -> None:
        self.tell = tell
        self.steps = 0
        self.seen: list[Any] = []

    def reset(self) -> str:
        self.steps = 0
        return "begun"

    def step(self, action: Any) -> Any:
        self.steps += 1
        self.seen.append(action)
        return self.tell(self.steps)


class Space:
    """An action space that counts up from its seed."""

    def seed(self, seed: int) -> None:
        self.next = seed

    def sample(self) -> int:
        self.next += 1
        return self.next


class Seeded(Plain):
    def reset(self, *, seed: int | None = None, options: object = None) -> Any:
        self.seeds = [*getattr(self, "seeds", []), seed]
        return super().reset(), {"lives": 3}


def after(steps: int, env: Any, seed: int = 1) -> EnvSubject:
    subject = EnvSubject(env, seed)
    for action in subject.draw(steps):
        subject.step(action)
    return subject


@pytest.mark.parametrize(
    ("tell", "resets"),
    [
        (lambda n: (n, 0.0, n >= 2, False, {}), 4),
        (lambda n: (n, 0.0, False, n >= 3, {}), 3),
        (lambda n: (n, 0.0, n >= 2, {}), 4),
        (lambda n: (n, 0.0, np.bool_(n >= 2), {}), 4),
        (lambda n: (n, 0.0, np.array([True, n >= 2]), np.array([False, False]), {}), 1),
        (lambda n: (n, True, True), 1),
        (lambda n: None, 1),
    ],
)
def test_an_episode_that_ended_begins_again_unless_the_env_does_it_itself(tell: Any, resets: int) -> None:
    counted = after(6, Plain(tell)).counters()
    assert (counted["env_steps"], counted["foreign_steps"], counted["resets"]) == (6, 6, resets)


@pytest.mark.parametrize(
    ("tell", "fields"),
    [
        (lambda n: (n, 0.5, False, False, {"a": 1}), {"observations", "rewards", "terminals", "truncations"}),
        (lambda n: (n, 0.5, False, {"a": 1}), {"observations", "rewards", "terminals"}),
    ],
)
def test_the_parts_of_an_answer_have_their_names(tell: Any, fields: set[str]) -> None:
    assert hashes(after(2, Plain(tell)).answers()).keys() == fields | {"infos.a", "reset.observations"}


def test_an_answer_of_any_other_form_is_one_field() -> None:
    assert after(2, Plain()).answers() == {"answer": 2, "reset.observations": "begun"}
    assert after(0, Seeded()).answers() == {"observations": "begun", "infos": {"lives": 3}}


def test_actions_come_from_a_space_a_list_or_a_number_and_follow_the_seed() -> None:
    spaced, listed, numbered = Plain(), Plain(), Plain()
    spaced.action_space = Space()  # type: ignore[attr-defined]
    numbered.actions, numbered.num_actions = (), 4  # type: ignore[attr-defined]
    assert list(EnvSubject(spaced, 7).draw(3)) == [8, 9, 10]
    assert set(EnvSubject(listed, 7).draw(50)) == {"left", "right"}
    assert set(EnvSubject(numbered, 7).draw(100)) == {0, 1, 2, 3}
    assert EnvSubject(listed, 7).draw(50) == EnvSubject(listed, 7).draw(50) != EnvSubject(listed, 8).draw(50)
    numbered.num_actions = 0  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="a Plain says no actions"):
        EnvSubject(numbered, 7)


def test_only_the_first_reset_is_given_the_seed() -> None:
    env = Seeded(lambda n: (n, 0.0, n >= 2, False, {}))
    after(4, env, seed=9)
    assert env.seeds == [9, None, None]


def test_a_turn_plays_a_tenth_more_than_it_times() -> None:
    env = Plain()
    subject = EnvSubject(env, 1)
    assert turn(subject, 20)["env_steps"] == 20
    assert len(env.seen) == subject.counters()["env_steps"] == 22


def test_many_envs_behind_one_call_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    env = Plain()
    env.num_envs, env.num_agents = 8, 3  # type: ignore[attr-defined]
    subject = EnvSubject(env, 1)
    assert turn(subject, 20)["env_steps"] == 24
    counted = subject.counters()
    assert counted["agent_steps"] == 3 * counted["env_steps"] == 3 * 8 * len(env.seen)
    monkeypatch.setattr(worker, "MOST_DRAWN", 4)
    env.seen.clear()
    assert turn(subject, 800)["env_steps"] == 800
    assert len(env.seen) == 10 + 100


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.zeros(4, np.int32), np.zeros(4, np.uint32)),
        (np.zeros((2, 2)), np.zeros(4)),
        (np.zeros(4), np.array([0, 0, 0, -0.0])),
        ([1, 23], [12, 3]),
        ([[1], [2]], [[1, 2]]),
        ("1", 1),
        (0.1, 0.1 + 1e-17 + 2e-17),
        ({"a": {"b": [1]}}, {"a": {"b": [2]}}),
    ],
)
def test_unlike_values_have_unlike_hashes(one: Any, other: Any) -> None:
    assert digest(one) != digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.float64(0.5), 0.5),
        (np.arange(4), np.arange(8)[::2] // 2),
        ({"a", "b", "c"}, {"c", "b", "a"}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (object(), object()),
    ],
)
def test_equal_values_have_equal_hashes(one: Any, other: Any) -> None:
    assert digest(one) == digest(other)


def test_an_error_is_the_last_answer(capsys: pytest.CaptureFixture[str]) -> None:
    asked = {"target": {"name": "support.nowhere:make", "keys": {}}, "seed": 1}
    answers = list(answers_to(asked, [{"facts": True}]))
    assert len(answers) == 1
    assert answers[0]["error"].startswith("ModuleNotFoundError: No module named 'support.nowhere'")
    assert "Traceback" in capsys.readouterr().err


def test_what_only_hotloop_can_step_is_said_where_it_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hotloop.core.settings", None)
    asked = {"target": {"name": "support.ecology:World", "keys": {}}, "seed": 3}
    said = [*answers_to(asked, [])]
    assert "support.ecology:World has no reset() or no action_space" in said[0]["error"]
    assert "have --build install it" in said[0]["error"]


def test_a_training_is_a_subject_whose_calls_are_updates() -> None:
    keys = {"num_envs": "2", "train.num_steps": "8", "train.update_epochs": "1"}
    asked = {"target": {"name": "gym:CartPole-v1", "keys": keys}, "seed": 3}
    facts, took, counted = answers_to(asked, [{"turn": 32}, {"counters": True}])
    assert (facts["num_envs"], facts["agents"]) == (16, 1)
    assert took["env_steps"] == 32
    assert counted["env_steps"] == 32
    assert (facts["impl"], facts["target"]) == ("foreign", None)  # the other commit may know other keys


def test_an_array_that_is_computed_when_it_is_read_has_no_hash() -> None:
    class Lazy:
        def __array__(self) -> Any:
            return np.zeros(3)

    with pytest.raises(TypeError, match="Lazy, which computes its values when they are read"):
        hashes({"observations": Lazy()})
    assert digest(np.ma.masked_array([1.0], [False]))


def test_a_preset_of_a_commit_is_made_with_the_seed_of_the_turns() -> None:
    asked = {"target": {"name": "grid/toy", "keys": {}}, "seed": 5}
    assert worker.open_subject({**asked, "reseed": True}).made.spec.seed == 5
    assert worker.open_subject(asked).made.spec.seed == 42
