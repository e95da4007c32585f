"""Courses of foreign envs have a seed that no run before had; a bundle keeps it."""

from typing import Any

import numpy as np

from hotloop.core.settings import Target
from hotloop.lab.validate.match import match_of
from hotloop.lab.validate.validate import again, validate
from hotloop.options.validate import ValidateOptions

SEEDS: list[int] = []

OPTIONS = ValidateOptions(target=f"{__name__}:Env", words=["60"])


class Env:
    num_actions = 2

    def __init__(self, wrong: bool = False) -> None:
        self.wrong = wrong

    def reset(self, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            SEEDS.append(seed)
            self.drawn = np.random.default_rng(seed).random()
        self.t = 0
        return np.array([self.drawn]), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return np.array([self.drawn + self.t]), float(self.wrong and self.t == 5), self.t > 9, False, {}


class Seeded(Env):
    """A maker with a seed of its own."""

    def __init__(self, seed: int = 3) -> None:
        super().__init__()


def seeds_of(candidate: Target) -> tuple[set[int], int | None, str]:
    SEEDS.clear()
    record, _ = validate(match_of(candidate, candidate.words), OPTIONS)
    assert record.exit_code == 0
    return {*SEEDS}, record.method.timing_seed, record.target.workload_hash


def test_both_sides_of_all_courses_share_a_seed_that_is_drawn_anew() -> None:
    given, first, workload = seeds_of(Target(f"{__name__}:Env"))
    assert first is not None
    assert given == {42, first}  # the first look has the seed of the target
    _, second, same = seeds_of(Target(f"{__name__}:Env"))
    assert second != first
    assert same == workload


def test_a_seed_that_is_given_or_the_makers_own_stays() -> None:
    assert seeds_of(Target(f"{__name__}:Env", {"seed": "7"}))[:2] == ({7}, None)
    assert seeds_of(Target(f"{__name__}:Seeded"))[:2] == ({42}, None)


def test_a_bundle_has_the_seed_it_was_found_under() -> None:
    record, bundle = validate(
        match_of(Target(f"{__name__}:Env", {"wrong": "True"}), f"{__name__}:Env"), OPTIONS
    )
    assert record.method.timing_seed is not None
    assert bundle is not None
    assert bundle.facts.candidate.keys["seed"] == record.method.timing_seed
    SEEDS.clear()
    replayed, _ = again(bundle)
    assert {*SEEDS} == {record.method.timing_seed}
    assert replayed.validation is not None
    assert replayed.validation.mismatches == 1
