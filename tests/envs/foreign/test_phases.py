"""What an env says of its own phases and counters is in the tree, the percentiles and the work."""

import os
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv
from gymnasium.envs.registration import EnvSpec
from support.profiles import profile
from support.reporting import OBSERVE, PHYSICS

import hotloop
from hotloop.core.errors import InputError
from hotloop.core.record import Record
from hotloop.core.settings import Target
from hotloop.envs.foreign import phases
from hotloop.envs.foreign.phases import phases_of
from hotloop.envs.open import open_target
from hotloop.judge.case import Case
from hotloop.lab import bench as benching
from hotloop.lab.compare.compare import CompareSettings, compare
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.loop import Plan, Rounds
from hotloop.lab.measure.sides import play

STEPS = 200

ZOO = Path(__file__).parents[2] / "zoo/owner_grid"


def rows(record: Record) -> dict[str, tuple[int, int]]:
    return {phase.path: (phase.calls, phase.total_ns) for phase in record.phases}


@pytest.mark.parametrize(
    ("name", "phases", "place"),
    [
        ("by_step", None, "wall/env.step/Doubled.step/ByStep.step/its own step"),
        ("in_all", None, "wall/env.step/InAll.step"),
        ("behind", "support.reporting:engine", "wall/env.step"),
    ],
)
def test_phases_stand_below_the_step_and_add_up(name: str, phases: str | None, place: str) -> None:
    record = profile(Target(f"support.reporting:{name}", phases=phases), steps=STEPS)
    told = rows(record)
    assert told[f"{place}/push"] == (STEPS, PHYSICS * STEPS)
    assert told[f"{place}/observe"] == (STEPS, OBSERVE * STEPS)
    if name == "by_step":
        assert told[place] == (STEPS, 450 * STEPS)
    push = next(phase for phase in record.phases if phase.path.endswith("/push"))
    assert push.p50_ns == pytest.approx(PHYSICS, rel=0.05)
    assert push.max_ns == PHYSICS
    slow = record.slow
    assert slow is not None
    assert {f"{place}/push", f"{place}/observe"} <= set(slow.steps[0].phases)


def test_what_reading_the_phases_takes_is_hotloop_s_own_row() -> None:
    record = profile(Target("support.reporting:by_step"), steps=STEPS)
    calls, taken = rows(record)["wall/hotloop"]
    assert calls == STEPS
    assert taken > 0
    assert not any(row.path == "wall/hotloop" for row in Case(record=record).rows)


def test_an_encoder_that_the_env_times_itself_is_in_one_row() -> None:
    record = profile(Target(str(ZOO / "grid.py:Grid")), steps=STEPS)
    told = {path: ns for path, (_, ns) in rows(record).items()}
    assert "wall/env.step/its own step/observations" in told
    assert not any(path.endswith("observation encoding") for path in told)
    below = sum(ns for path, ns in told.items() if path.rpartition("/")[0] == "wall/env.step")
    assert below <= told["wall/env.step"]


class Struct:
    """As bindings show a struct: its fields are the class's."""

    push_ns = property(lambda self: 3)
    total_ns = property(lambda self: 4)
    name = "step"


def test_the_fields_of_a_struct_are_looked_up_once_for_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    assert phases_of(Struct()) == {"push": 3, "step": 4}
    looks: list[object] = []
    monkeypatch.setattr(phases, "times_among", lambda names: looks.append(names) or [])
    assert phases_of(Struct()) == {"push": 3, "step": 4}
    assert not looks


def test_fields_that_only_one_object_has_are_found_too() -> None:
    assert phases_of(SimpleNamespace(push_ns=1, pull_ns=2, other=3)) == {"push": 1, "pull": 2}
    assert phases_of(SimpleNamespace(pull_ns=5)) == {"pull": 5}


def test_the_last_step_may_be_told_by_a_function_and_a_name_stays_one_row() -> None:
    record = profile(Target("support.theirs:make", phases="support.reporting:last_step"), steps=STEPS)
    assert rows(record)["wall/env.step/a.b"] == (STEPS, OBSERVE * STEPS)


def test_counters_are_work_and_a_path_that_never_ran_is_said() -> None:
    rounds = Rounds(count=6, iterations=50, warmup=20, box_iterations=False)
    record = benching.bench(Target("support.reporting:in_all"), rounds, extras=benching.Extras(phases=True))
    assert record.work.updates == 3 * 300
    assert record.path.counters["native_steps"] == 0
    assert "only 0.0% of the steps ran as native" in [each.text for each in record.notices]
    assert any(phase.path.endswith("InAll.step/push") for phase in record.phases)


def test_phases_and_less_work_are_compared() -> None:
    a, b = (
        TargetContender(Target("support.reporting:in_all", keys))
        for keys in ({"updates": 3, "slower": 1_000}, {"updates": 1, "slower": 2_000})
    )
    plan = Plan(budget_ns=50_000_000, fewest=6)
    record = compare(a, b, CompareSettings(plan=plan, profile=True, unlike=True))
    found = {each.phase: each.ratio.estimate for each in record.comparisons[0].phases}
    assert found["push"] == pytest.approx(0.5)
    assert record.comparisons[0].a.work.updates == 3 * record.comparisons[0].b.work.updates


def test_what_is_no_phases_is_refused() -> None:
    with pytest.raises(InputError, match="phases come as a list: expected a mapping"):
        phases_of([1, 2])


def test_a_function_from_python_finds_the_phases() -> None:
    from support import reporting

    record = hotloop.profile(reporting.behind, steps=STEPS, phases=reporting.engine)
    assert rows(record)["wall/env.step/push"] == (STEPS, PHYSICS * STEPS)


@pytest.mark.parametrize("timed", [True, False])
def test_what_computes_behind_its_caller_is_waited_for_where_it_is_timed(
    timed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[object] = []
    jax = SimpleNamespace(block_until_ready=lambda results: waited.append(results) or results)
    monkeypatch.setitem(sys.modules, "jax", jax)
    subject = open_target(Target("support.theirs:make"), profile=timed)
    subject.reset()
    subject.step(0)
    subject.close()
    assert [len(each) for each in waited] == ([2, 5] if timed else [])  # of a reset, of a step


@pytest.mark.parametrize("timed", [True, False])
def test_an_engine_behind_an_id_knows_whether_it_is_to_time_itself(
    monkeypatch: pytest.MonkeyPatch, timed: bool
) -> None:
    found = []

    def make(**keys: object) -> gymnasium.Env[Any, Any]:
        found.append(os.environ.get("HOTLOOP_PROFILING"))
        return CartPoleEnv()

    monkeypatch.delenv("HOTLOOP_PROFILING", raising=False)
    monkeypatch.setitem(gymnasium.registry, "Engine-v0", EnvSpec("Engine-v0", make))
    open_target(Target("gym:Engine-v0"), profile=timed).close()
    assert found == (["1"] if timed else [None])
    assert "HOTLOOP_PROFILING" not in os.environ


def test_a_turn_ends_when_jax_has_what_the_last_step_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[Any] = []
    jax = SimpleNamespace(block_until_ready=lambda results: waited.append(results) or results)
    monkeypatch.setitem(sys.modules, "jax", jax)
    with closing(open_target(Target("support.theirs:make"))) as subject:
        subject.reset()
        play(subject, subject.draw(np.random.default_rng(0), 3), 3)
    assert len(waited) == 2
    assert waited[-1][0][0] is subject.observation
    with closing(open_target(Target("support.micro:query"))) as function:
        waited.clear()
        play(function, [None], 3)
    assert len(waited) == 3 + 2
