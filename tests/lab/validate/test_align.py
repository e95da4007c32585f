"""Sides of unlike numbers of envs, or unlike interfaces, validated env by env."""

from pathlib import Path

import pytest

from hotloop.core.errors import ExitCode, InputError
from hotloop.core.record import Record
from hotloop.core.settings import Target
from hotloop.envs import env_by_env
from hotloop.envs.open import open_target
from hotloop.lab.validate import bundle
from hotloop.lab.validate.match import aligned, match_of
from hotloop.lab.validate.validate import again, validate
from hotloop.options.validate import ValidateOptions

ZOO = Path(__file__).parents[2] / "zoo"

VEC_ENVS = """
import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete


class One(gymnasium.Env):
    observation_space = Box(-99, 99, (2,), np.float32)
    action_space = Discrete(3)

    def __init__(self, wrong=0):
        self.wrong = wrong

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.at = 0, self.np_random.random(2).astype(np.float32)
        return self.at.copy(), {}

    def step(self, action):
        self.steps += 1
        self.at += np.float32(action / 7)
        ended, cut = bool(self.at[0] > 3), self.steps == 15 + self.wrong
        return self.at.copy(), float(self.at[0] / 3), ended, cut, {"steps": self.steps}


def dummy(num_envs=3, wrong=0):
    from stable_baselines3.common.vec_env import DummyVecEnv

    return DummyVecEnv([lambda env=env: One(wrong * (env == 1)) for env in range(num_envs)])


class Batch:
    def __init__(self, num_envs, wrong=0):
        self.num_envs, self.envs_ = num_envs, [One(wrong * (env == 1)) for env in range(num_envs)]
        self.observation_space, self.action_space = One.observation_space, One.action_space

    def reset(self, seed=None):
        seeds = [None if seed is None else seed + env for env in range(self.num_envs)]
        return np.stack([env.reset(seed=seed)[0] for env, seed in zip(self.envs_, seeds)]), {}

    def step(self, actions):
        rows = []
        for env, action in zip(self.envs_, actions):
            seen, reward, ended, cut, _ = env.step(action)
            rows.append((env.reset()[0] if ended or cut else seen, np.float32(reward), ended, cut))
        return *(np.array(column) for column in zip(*rows)), {}
"""


@pytest.fixture
def place(tmp_path: Path) -> str:
    file = tmp_path / "vec_envs.py"
    file.write_text(VEC_ENVS)
    return str(file)


def validated(candidate: str, against: str, steps: int = 600) -> tuple[Record, bundle.Bundle | None]:
    name, *pairs = candidate.split()
    match = match_of(Target(name, dict(pair.split("=") for pair in pairs)), against)
    return validate(match, ValidateOptions(target=match.candidate.name, words=[str(steps)]))


@pytest.mark.parametrize(("candidate", "against"), [("Batch", "One"), ("One", "Batch num_envs=3")])
def test_a_batch_object_and_a_single_env_are_validated_against_each_other(
    place: str, candidate: str, against: str
) -> None:
    record, _ = validated(f"{place}:{candidate}", f"{place}:{against}")
    assert record.exit_code == ExitCode.FINE
    assert record.validation is not None
    assert record.validation.parts[0].num_envs >= 3
    assert {"observations", "rewards", "terminals", "truncations"} <= {*record.validation.fields}
    assert "infos.steps" in record.validation.left_out


@pytest.mark.parametrize("against", ["One", "Batch num_envs=3"])
def test_a_vec_env_is_validated_with_both_of_its_ends(place: str, against: str) -> None:
    pytest.importorskip("stable_baselines3")
    record, _ = validated(f"{place}:dummy", f"{place}:{against}")
    assert record.exit_code == ExitCode.FINE
    record, _ = validated(f"{place}:dummy wrong=1", f"{place}:{against} wrong=0")
    assert record.exit_code == ExitCode.MISMATCH
    assert record.validation is not None
    assert record.validation.difference is not None
    assert record.validation.difference.env == 1


def test_an_env_of_a_batch_that_differs_is_named_and_shown_again_by_its_bundle(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hotloop.lab.validate.bundle.BUDGET_NS", 300_000_000)
    record, kept = validated(f"{place}:Batch num_envs=3 wrong=1", f"{place}:One wrong=0")
    assert record.exit_code == ExitCode.MISMATCH
    assert record.validation is not None
    assert record.validation.difference is not None
    assert record.validation.difference.index[0] == 1
    assert kept is not None
    assert again(kept)[0].exit_code == ExitCode.MISMATCH


def test_a_target_without_keys_is_no_reference_with_the_keys_of_its_candidate() -> None:
    record, _ = validated(f"{ZOO}/vec.py:V num_envs=32 cheat=1", f"{ZOO}/vec.py:V")
    assert record.exit_code == ExitCode.MISMATCH
    assert record.validation is not None
    assert record.validation.difference is not None
    assert record.validation.difference.index == (1, 0)


def test_envs_without_a_counterpart_are_said_and_leave_the_answer_open(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(env_by_env, "MOST_ENVS", 2)
    record, _ = validated(f"{place}:Batch num_envs=6", f"{place}:One")
    assert record.validation is not None
    assert (record.validation.mismatches, record.validation.envs_not_compared) == (0, 4)
    assert (record.verdict, record.exit_code) == ("cannot tell", ExitCode.CANNOT_TELL)


def test_instances_begin_where_the_seeds_of_those_before_them_end(place: str) -> None:
    pair, five = (open_target(Target(f"{place}:Batch", {"num_envs": n, "seed": 9})) for n in (2, 5))
    with aligned(pair, five) as (narrow, wide):
        narrow.reset()
        wide.reset()
        assert narrow.spec.num_envs == 5
        assert (narrow.everything()["observations"] == wide.everything()["observations"]).all()


def test_what_has_no_rows_is_refused_if_it_has_unlike_numbers_of_envs() -> None:
    sides = (open_target(Target("pettingzoo:classic.rps_v2", keys)) for keys in ({}, {"num_envs": 2}))
    with pytest.raises(InputError, match=r"cannot be compared env by env.*--unlike"), aligned(*sides):
        pass
