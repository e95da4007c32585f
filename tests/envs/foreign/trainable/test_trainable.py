"""Somebody's envs as a batch that can be trained on: every space, teams, masks, and who steps them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Sequence, Tuple
from support.made_to_train import Echo

from hotloop.core.errors import InputError, TheirError
from hotloop.core.process import lifeline
from hotloop.core.settings import Target
from hotloop.envs.batch import Batch
from hotloop.envs.foreign.forms import action_reader, observation_reader
from hotloop.envs.foreign.training import EnvsBatch, open_trainable, shared_out

HERE = "support.made_to_train"


@contextmanager
def opened(name: str, **keys: object) -> Iterator[EnvsBatch]:
    batch = open_trainable(Target(f"{HERE}:{name}" if ":" not in name else name, keys))
    assert isinstance(batch, EnvsBatch)
    batch.reset()
    try:
        yield batch
    finally:
        batch.close()


@pytest.mark.parametrize(
    ("space", "seen", "row"),
    [
        (Box(0, 255, (2, 2), np.uint8), np.array([[1, 2], [3, 4]], np.uint8), [1, 2, 3, 4]),
        (Discrete(3, start=-1), 1, [0, 0, 1]),
        (MultiDiscrete([2, 3]), np.array([1, 0]), [0, 1, 1, 0, 0]),
        (MultiBinary(2), np.array([0, 1]), [0, 1]),
        (Tuple((Discrete(2), Box(0, 9, (1,)))), (1, [7.0]), [0, 1, 7]),
        (Dict({"x": Box(0, 1, (1,)), "action_mask": MultiBinary(4)}), {"x": [0.5]}, [0.5]),
    ],
)
def test_what_is_seen_becomes_a_row(space: Any, seen: Any, row: list[float]) -> None:
    reader = observation_reader("mine", space)
    found = np.full(reader.size, np.nan, np.float32)
    reader.write(seen, found)
    assert found.tolist() == row


def test_actions_are_in_the_terms_of_the_env() -> None:
    assert action_reader("mine", Discrete(3, start=5)).own(np.int32(1)) == 6
    several = action_reader("mine", MultiDiscrete([[2, 3], [4, 5]]))
    assert several.outputs == 14
    assert several.own(np.array([1, 2, 3, 4])).tolist() == [[1, 2], [3, 4]]
    real = action_reader("mine", Echo.action_space)
    assert real.outputs == 4
    assert real.own(np.array([0.5, 3], np.float32)).tolist() == [1, 3]
    assert real.own(np.array([9, -3], np.float32)).tolist() == [2, 0]
    assert real.own(np.zeros(2, np.float32)).dtype == np.float32


@pytest.mark.parametrize("what", ["observes", "acts"])
def test_other_spaces_are_refused_with_what_they_are(what: str) -> None:
    strange = Sequence(Discrete(2))
    with pytest.raises(InputError, match=f"mine {what}.*Sequence.*expected"):
        (observation_reader if what == "observes" else action_reader)("mine", strange)
    with pytest.raises(InputError, match="a Box of real numbers"):
        action_reader("mine", Box(0, 9, (2,), np.int32))


def played(vector: str, calls: int = 11, **keys: object) -> list[Any]:
    """Everything that some random steps show."""
    with opened("echo", num_envs=5, vector=vector, **keys) as batch:
        random, shown = np.random.default_rng(1), []
        for actions in batch.draw(random, calls):
            batch.step(actions)
            shown += [array.copy() for name, array in batch.answers().items() if name != "digest"]
        assert batch.counters["env_steps"] == calls * 5
        assert batch.counters["resets"] == 5 + 2 * 5
    return shown


def test_workers_and_threads_answer_as_one_after_another() -> None:
    here = played("sync")
    assert any(array.any() for array in here)
    for vector, workers in (("async", 2), ("threads", 3), ("async", 5)):
        for one, other in zip(here, played(vector, workers=workers), strict=True):
            np.testing.assert_array_equal(one, other)


def test_envs_are_shared_out_evenly() -> None:
    assert [len(share) for share in shared_out(7, 3)] == [2, 2, 3]
    assert [place for share in shared_out(7, 3) for place in share] == list(range(7))


@pytest.mark.parametrize("vector", ["sync", "threads", "async"])
def test_an_env_that_raises_says_where(vector: str, capfd: pytest.CaptureFixture[str]) -> None:
    more = {} if vector == "sync" else {"workers": 2}
    with opened("echo", fault="raises", num_envs=2, vector=vector, **more) as batch:
        actions = batch.new_actions()
        batch.step(actions)
        with pytest.raises(TheirError, match=r"ValueError: out of fuel .*made_to_train.py:\d+ in step"):
            batch.step(actions)
    assert ("Traceback" in capfd.readouterr().err) == (vector == "async")


@pytest.mark.parametrize("vector", ["sync", "threads", "async"])
@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("sees nan", "env 0 had nan among its observations in step 2, and nothing can be learnt"),
        ("ends with inf", "env 0 had inf among its final observations in step 2"),
        ("earns inf", "env 0 had inf among its rewards in step 2"),
        ("earns a googol", "a reward that is int: expected a number"),
        ("earns words", "a reward that is str: expected a number"),
        ("two ends", "terminated as an array of "),
        ("six", "a tuple of 6: expected"),
    ],
)
def test_what_nothing_can_be_learnt_from_is_refused_where_it_came(vector: str, fault: str, told: str) -> None:
    with opened("echo", fault=fault, num_envs=2, vector=vector) as batch:
        batch.step(batch.new_actions())
        with pytest.raises(InputError, match=told):
            batch.step(batch.new_actions())


def test_an_episode_that_begins_with_no_number_is_refused() -> None:
    with pytest.raises(InputError, match="env 0 had nan among its observations after a reset"):
        opened("echo", fault="begins as nan", num_envs=2).__enter__()


def test_an_env_that_cannot_be_closed_is_told_of_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifeline, "unclosed", [])
    with opened("echo", fault="does not close", num_envs=2):
        pass
    assert ["not now" in each for each in lifeline.unclosed] == [True, True]


def test_a_worker_that_dies_is_named_with_what_ended_it() -> None:
    with opened("echo", fault="dies", num_envs=3, vector="async", workers=2) as batch:
        actions = batch.new_actions()
        batch.step(actions)
        with pytest.raises(TheirError, match="the worker of env 0 was ended by SIGKILL"):
            batch.step(actions)


def test_workers_end_with_their_batch() -> None:
    with opened("echo", num_envs=2, vector="async") as batch:
        processes = [worker.process for worker in batch.crew._workers]  # type: ignore[attr-defined]
        assert all(process.is_alive() for process in processes)
    assert not any(process.is_alive() for process in processes)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"vector": "own"}, "expected one of sync, threads, async"),
        ({"workers": 2}, "workers= is for vector=async"),
        ({"vector": "async", "workers": 3}, "from 1 to 2"),
        ({"vector": "async", "workers": "many"}, "workers=many"),
    ],
)
def test_a_crew_that_cannot_be_is_refused(keys: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        open_trainable(Target(f"{HERE}:echo", {"num_envs": 2, **keys}))


def steps(batch: Batch, count: int) -> None:
    for _ in range(count):
        batch.step(batch.choose("random"))


def test_agents_of_a_team_leave_and_come_back_with_the_next_episode() -> None:
    with opened("leaving", num_envs=2) as batch:
        alive, died = batch.infos["alive"], batch.infos["died"]
        assert alive.all()
        steps(batch, 2)
        assert died.tolist() == [[True, False, False]] * 2
        assert alive.tolist() == [[False, True, True]] * 2
        steps(batch, 1)
        assert batch.rewards[0, 0] == 0
        assert (batch.rewards[0, 1:] >= 1).all()
        assert not died.any()
        steps(batch, 2)
        assert batch.truncations.all()
        assert not batch.terminals.any()
        assert died.tolist() == [[False, True, False]] * 2
        assert alive.all()
        assert batch.final_observations[0, 1:].tolist() == [[5], [5]]
        assert batch.observations[0].tolist() == [[0], [0], [0]]
        assert batch.infos["lives"].tolist() == [3, 3]
        assert batch.counters["agent_steps"] == 2 * (2 * 3 + 3 * 2)


def test_agents_that_are_not_alike_are_refused() -> None:
    with pytest.raises(InputError, match=r"observation_space of c is .* one network plays all agents"):
        open_trainable(Target(f"{HERE}:leaving", {"unlike": True}))


@pytest.mark.parametrize("target", ["make says=info", "make says=observation", "make says=method", "parts"])
def test_random_play_keeps_to_the_masks(target: str) -> None:
    asked = Target.parse(f"support.masked:{target}")
    with opened(asked.name, num_envs=3, **asked.keys) as batch:
        assert batch.masks is not None
        assert batch.masks.shape == (3, 1, 5)
        assert batch.masks.sum() == 2 * 3
        steps(batch, 20)


def test_what_is_no_env_is_refused() -> None:
    with pytest.raises(InputError, match="is a Plain: hotloop train takes envs of Gymnasium"):
        open_trainable(Target("support.theirs:Plain"))


def test_actions_of_another_shape_are_refused() -> None:
    with (
        opened("echo", num_envs=2) as batch,
        pytest.raises(InputError, match=r"float64 \(2, 2\): expected float32 \(2, 1, 2\)"),
    ):
        batch.step(np.zeros((2, 2)))  # type: ignore[arg-type]
