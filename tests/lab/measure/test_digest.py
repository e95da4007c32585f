"""A short play's digest stands in the records of bench and validate: one that ran other code is noticed."""

import os
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest

from hotloop.core.record import Record
from hotloop.core.settings import Target
from hotloop.envs.open import open_target
from hotloop.judge.compare import changes_between, compare_records, unlike_plays
from hotloop.lab.bench import bench
from hotloop.lab.measure import record
from hotloop.lab.measure.loop import Rounds
from hotloop.lab.measure.record import DIGEST_MARKS, play_digest
from hotloop.lab.validate.match import match_of
from hotloop.lab.validate.validate import validate
from hotloop.options.validate import ValidateOptions
from hotloop.report.kinds.record import overview
from hotloop.report.page import overview as page

ROUNDS = Rounds(count=6, iterations=10, warmup=10, box_iterations=False)

SWITCH = "HOTLOOP_TEST_OTHER_CODE"


class Env(gymnasium.Env[Any, Any]):
    """What it shows depends on its seed, on the process's own random numbers, and on a switch."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, kind: str = "usual") -> None:
        self.kind, self.made = kind, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.t = 0
        self.made += 1
        return self.seen(), {}

    def seen(self) -> Any:
        drawn = self.np_random.random() + random.random() if self.kind != "counting" else float(self.made)
        return np.array([drawn, self.t], np.float32)

    def step(self, action: Any) -> Any:
        self.t += 1
        if self.kind == "raising" and self.t == 9:
            raise ValueError("over")
        wrong = SWITCH in os.environ and self.t == 7
        return self.seen(), float(action) + wrong, False, self.t >= 20, {}


NAME = f"{__name__}:Env"


def played(**keys: object) -> dict[str, str] | None:
    subject = open_target(Target(NAME, keys))
    try:
        return play_digest(subject)
    finally:
        subject.close()


def test_the_same_code_has_the_same_digest() -> None:
    first = played()
    assert first is not None
    assert first.keys() == {str(each) for each in DIGEST_MARKS}
    assert first == played()
    assert first != played(seed="7")
    assert played(num_envs="2") == played(num_envs="2") != first


def test_what_a_play_draws_is_put_back() -> None:
    random.seed(1)
    expected = random.Random(1).random()
    played()
    assert random.random() == expected


def test_what_differs_from_itself_has_no_digest() -> None:
    assert played(kind="counting") is None


def test_an_env_that_raises_in_the_short_play_has_none() -> None:
    assert played(kind="raising") is None


def test_a_slow_env_has_the_digest_of_fewer_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = played()
    monkeypatch.setattr(record, "now_ns", iter(range(0, 10**12, record.DIGEST_BOX_NS // 6)).__next__)
    part = played()
    assert whole
    assert part
    assert len(part) < len(whole)
    assert part.items() <= whole.items()
    monkeypatch.setattr(record, "now_ns", iter(range(0, 10**15, 2 * record.DIGEST_BOX_NS)).__next__)
    assert played() is None


@pytest.mark.parametrize("target", ["grid/toy", f"{__name__}:number"])
def test_presets_and_functions_have_none(target: str) -> None:
    subject = open_target(Target(target))
    assert play_digest(subject) is None
    subject.close()


def number() -> int:
    return 3


def validated() -> Record:
    match = match_of(Target(NAME), NAME)
    return validate(match, ValidateOptions(target=match.candidate.name, words=["50"]))[0]


def test_bench_and_validate_record_the_same_digest() -> None:
    measured, checked = bench(Target(NAME), ROUNDS), validated()
    assert measured.method.digest is not None
    assert measured.method.digest == checked.method.digest
    assert not [*unlike_plays([checked, measured])]
    assert not page.find_attention((), (), [checked, measured])


def test_a_bench_that_ran_other_code_than_validate_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = validated()
    monkeypatch.setenv(SWITCH, "1")
    measured = bench(Target(NAME), ROUNDS)
    assert [*unlike_plays([checked, measured])] == [(checked, measured, 8)]
    said = "within 8 steps of its reset it showed something else than in validate"
    assert said in str(overview([checked, measured]))
    (look,) = page.find_attention((), (), [checked, measured])
    assert said in look.told
    (warned,) = [each for each in changes_between(checked, measured) if each.code == "digests-differ"]
    assert "within 8 steps" in warned.text


def test_two_records_with_unlike_digests_are_compared_with_a_warning() -> None:
    first = bench(Target(NAME), ROUNDS)
    assert not codes(compare_records(first, first, band=0.02, unlike=False))
    other = replace(first, method=replace(first.method, digest={"0": "0"}))
    assert codes(compare_records(first, other, band=0.02, unlike=False)) == ["digests-differ"]


def codes(record: Record) -> Sequence[str]:
    return [each.code for each in record.notices if each.code.endswith("differ")]
