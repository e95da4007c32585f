"""The experiments as functions of Python: of names, of functions that make envs, of envs."""

import numpy as np
import pytest
from support import theirs

import hotloop
from hotloop.core.errors import InputError


def test_bench_measures_a_function_an_env_and_a_name() -> None:
    few = {"rounds": 6, "iterations": 20, "warmup": 20}
    for env in (lambda work=1: theirs.Env(work), theirs.Env(), "support.theirs:make work=2"):
        record = hotloop.bench(env, **few)
        assert (record.kind, record.work.env_steps) == ("bench", 120)
    assert hotloop.bench(theirs.make, work=3, seed=5, **few).target.params == {"work": 3, "seed": 5}


def test_bench_is_played_by_a_function_of_ours() -> None:
    record = hotloop.bench(theirs.make, policy=lambda seen: 3, rounds=6, iterations=20, warmup=10)
    assert "<lambda> (replayed tape)" in record.method.policy


def test_compare_holds_two_functions_against_each_other() -> None:
    record = hotloop.compare(theirs.make, lambda: theirs.Env(1), seconds=0.05)
    assert record.validation is not None
    assert record.validation.mismatches == 0
    assert record.kind == "compare"


def test_compare_finds_a_difference_of_infos_that_a_reset_does_not_give() -> None:
    class Silent(theirs.Env):
        """Its resets tell nothing, as most do not."""

        told = 0

        def reset(self, **given: object) -> object:
            return super().reset(**given)[0], {}

        def step(self, action: object) -> object:
            *rest, _ = super().step(action)
            return (*rest, {"time": self.told})

    class Other(Silent):
        told = 1

    record = hotloop.compare(Silent, Other, seconds=0.05)
    assert record.exit_code == 2
    assert "infos.time" in (record.comparisons[0].difference or "")
    assert hotloop.validate(Other, 50, against=Silent).exit_code == 2
    assert hotloop.validate(Other, 50, against=Silent, ignore=["infos.time"]).exit_code == 0
    assert hotloop.compare(Silent, Silent, seconds=0.05).validation.mismatches == 0  # type: ignore[union-attr]


def test_a_field_that_nobody_shows_cannot_be_ignored() -> None:
    with pytest.raises(InputError, match=r"--ignore infos.tiem: .*infos.age"):
        hotloop.validate(theirs.make, 50, against=theirs.make, ignore=["infos.tiem"])


def test_a_key_in_the_place_of_an_amount_is_refused() -> None:
    with pytest.raises(InputError, match="'num_envs=2' is no amount"):
        hotloop.validate("grid/toy", "num_envs=2")


def test_validate_holds_a_function_against_another() -> None:
    record = hotloop.validate(lambda: theirs.Env(1), 50, against=theirs.make)
    assert record.validation is not None
    assert record.validation.comparisons > 50
    assert np.isfinite(record.validation.timing_ratio or 0.0)


def test_what_is_no_env_is_refused() -> None:
    with pytest.raises(InputError, match="3 cannot be measured"):
        hotloop.bench(3)
