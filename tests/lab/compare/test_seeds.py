"""The timed turns of a run share a seed that no run before had; the replay keeps the target's."""

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from support.sides import FakeContender, steady

from hotloop.core.settings import Target
from hotloop.lab.compare.compare import CompareSettings, compare
from hotloop.lab.compare.contenders import TargetContender, draw_seed
from hotloop.lab.measure.loop import Plan

SHORT = CompareSettings(plan=Plan(budget_ns=200_000_000))

SEEDS: list[int] = []
"""What the resets of every env were given, in order."""

USUAL = 42


class Env(gymnasium.Env[Any, Any]):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, wrong: bool = False) -> None:
        self.wrong, self.steps = wrong, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        if seed is not None:
            SEEDS.append(seed)
        self.start = float(self.np_random.random())
        self.t = 0
        return self.seen(), {}

    def seen(self) -> Any:
        return np.array([self.start, self.t % 2], np.float32)

    def step(self, action: Any) -> Any:
        self.t += 1
        self.steps += 1
        late = self.wrong and self.steps > 520
        return self.seen(), float(late), False, self.t >= 20, {}


HERE = f"{__name__}:Env"


def contender(**keys: object) -> TargetContender:
    return TargetContender(Target(HERE, keys))


@pytest.mark.parametrize("num_envs", [1, 2])
def test_all_sides_of_a_run_share_a_seed_that_is_drawn_anew(num_envs: int) -> None:
    keys = {} if num_envs == 1 else {"num_envs": num_envs}
    drawn = []
    for _ in range(2):
        SEEDS.clear()
        record = compare(contender(**keys), contender(**keys), SHORT)
        seed = record.method.timing_seed
        assert seed is not None
        assert {*SEEDS} == {first + env for first in (USUAL, seed) for env in range(num_envs)}
        assert record.target.params["seed"] == USUAL
        drawn.append((seed, record.target.workload_hash))
    assert drawn[0][0] != drawn[1][0]
    assert drawn[0][1] == drawn[1][1]


def test_a_seed_among_the_keys_is_the_seed_of_the_turns() -> None:
    SEEDS.clear()
    record = compare(contender(seed="7"), contender(seed="7"), SHORT)
    assert record.method.timing_seed is None
    assert {*SEEDS} == {7}


def test_a_preset_is_opened_with_the_seed() -> None:
    a, b = (TargetContender(Target("grid/toy", {"num_envs": "2"})) for _ in range(2))
    with_seed, without = a.side("random", seed=5), b.side("random")
    assert with_seed.subject.spec.seed == 5
    assert without.subject.spec.seed == USUAL
    for each in (with_seed, without, a, b):
        each.close()


def test_a_tape_is_played_under_the_seed_it_was_recorded_with() -> None:
    assert draw_seed(contender(), contender(), "tape:some.npz") is None
    assert draw_seed(contender(), contender(), "random") is not None


def test_a_recorded_player_plays_ahead_under_the_seed_of_the_turns() -> None:
    SEEDS.clear()
    player = f"{__name__}:left"
    record = compare(contender(), contender(), replace(SHORT, policy=player))
    assert {*SEEDS} == {USUAL, record.method.timing_seed}
    assert not record.comparisons[0].difference


def left(seen: Any) -> int:
    return int(seen[1])


def test_a_difference_between_turns_names_the_seed() -> None:
    record = compare(contender(), contender(wrong=True), CompareSettings(plan=Plan(budget_ns=2_000_000_000)))
    assert f"seed={record.method.timing_seed}" in str(record.comparisons[0].difference)


def test_every_side_of_every_run_is_given_the_seed() -> None:
    a, b = FakeContender("a", steady(100)), FakeContender("b", steady(100))
    record = compare(a, b, SHORT)
    assert {*a.seeds, *b.seeds} == {record.method.timing_seed}
    assert len(a.seeds) == 2
