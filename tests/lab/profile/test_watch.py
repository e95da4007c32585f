"""Single calls of real profiles: what is slow in them is named, whatever the reason."""

from time import sleep

import pytest
from support.profiles import profile

from hotloop.core.record import Record
from hotloop.core.record.profile import Slow
from hotloop.core.settings import Target
from hotloop.lab.profile import slow as module
from hotloop.lab.profile.profile import PAIRS

WARMUP = 100
STEPS = PAIRS * 100


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotloop.lab.profile.profile.WARMUP", WARMUP)


def slow_of(record: Record) -> Slow:
    assert record.slow is not None
    return record.slow


def test_a_pause_in_one_step_of_ten_thousand_is_named_with_its_step_and_place() -> None:
    slow = slow_of(profile(Target("support.stalling:make", {"at": 8_050, "seconds": 0.2}), 10_000))
    assert slow.calls == 10_000
    (found,) = [step for step in (*slow.steps, *slow.resets) if step.step == 8_050]
    assert found.wall_ns >= 200_000_000
    assert found.phases["wall/env.step"] >= 0.99 * found.wall_ns
    assert (found.env, found.seed, found.gc_ns, found.resets) == (0, 42, 0, 1)


def test_a_pause_in_the_warmup_is_named_too() -> None:
    slow = slow_of(profile(Target("support.stalling:make", {"at": 41, "seconds": 0.2}), STEPS))
    assert slow.warmup[0].step == 41
    assert slow.warmup[0].phases == {"wall": slow.warmup[0].wall_ns}
    assert slow.warmup[0].check_step == WARMUP


def test_steps_in_which_an_episode_began_are_kept_apart() -> None:
    record = profile(Target("support.stalling:make", {}), STEPS)
    slow = slow_of(record)
    assert {step.resets for step in slow.steps} == {0}
    assert {step.resets for step in slow.resets} == {1}
    assert {step.step % 50 for step in slow.resets} == {0}
    resets = {spread.path: spread.calls for spread in slow.reset_spreads}
    assert resets["wall"] == resets["wall/env.reset"] == STEPS // 50


def test_garbage_that_is_collected_by_itself_is_marked_and_costs_the_instrument_nothing() -> None:
    record = profile(Target("support.stalling:litter", {}), STEPS)
    slow = slow_of(record)
    rows = {phase.path: phase for phase in record.phases}
    assert slow.pauses.collections > 10
    collected = [row for path, row in rows.items() if path.endswith("/garbage collection")]
    assert sum(row.calls for row in collected) == slow.pauses.collections
    assert sum(row.total_ns for row in collected) == pytest.approx(slow.pauses.total_ns, rel=0.05)
    assert any(step.gc_ns > step.wall_ns / 2 for step in slow.steps)
    assert all(0 <= step.gc_ns <= step.wall_ns for step in slow.steps)


def test_garbage_that_the_target_collects_itself_is_marked_in_its_step() -> None:
    slow = slow_of(profile(Target("support.stalling:litter", {"at": 1_030}), STEPS))
    (found,) = [step for step in slow.steps if step.step == 1_030]
    assert found.collections >= 1
    assert found.gc_ns > found.wall_ns / 2


def test_a_program_without_a_collector_is_left_without(monkeypatch: pytest.MonkeyPatch) -> None:
    import gc

    gc.disable()
    try:
        slow = slow_of(profile(Target("support.stalling:litter", {}), STEPS))
    finally:
        gc.enable()
    assert slow.pauses.collections == 0


@pytest.mark.parametrize(("impl", "calls"), [("native", STEPS), ("reference", 600)])
def test_every_call_of_a_batch_is_in_its_spread_and_adds_up(impl: str, calls: int) -> None:
    given = {"num_envs": 4, "agents": 3, "impl": impl, "max_steps": 30}
    record = profile(Target("grid/toy", given), 4 * calls)
    slow = slow_of(record)
    resets = {spread.path: spread.calls for spread in slow.reset_spreads}
    assert slow.calls == calls
    assert resets["wall"] == len(
        [call for call in range(WARMUP // 4, WARMUP // 4 + calls) if call % 30 == 29]
    )
    for step in (*slow.steps, *slow.resets):
        inside = sum(ns for path, ns in step.phases.items() if path.startswith("wall/step/"))
        assert step.phases["wall/python"] + step.phases["wall/step"] == step.phases["wall"] == step.wall_ns
        assert inside <= step.phases["wall/step"] + len(step.phases)
    rows = {phase.path: phase for phase in record.phases}
    for row in rows.values():
        assert row.max_ns is not None
        assert row.p50_ns is not None
        assert row.p50_ns <= row.max_ns


def test_calls_account_for_the_whole_wall_time() -> None:
    record = profile(Target("grid/toy", {"num_envs": 64, "agents": 3}), 64 * 200)
    slow = slow_of(record)
    assert slow.calls == 200
    wall = next(phase for phase in record.phases if phase.path == "wall")
    assert max(step.wall_ns for step in slow.steps) <= wall.total_ns


def test_no_call_lasts_longer_than_the_whole_though_the_core_is_lost_right_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a neighbor does: it takes the core once the last call has returned."""
    monkeypatch.setattr("hotloop.lab.profile.profile.glance", lambda: sleep(0.2))
    record = profile(Target("grid/toy", {"num_envs": 2, "agents": 3}), 2 * STEPS)
    wall = next(phase for phase in record.phases if phase.path == "wall")
    assert max(step.wall_ns for step in slow_of(record).steps) <= wall.total_ns


def test_passes_that_are_longer_than_the_log_are_cut_and_miss_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "EVENTS", 64)
    monkeypatch.setattr(module, "FIRST_CALLS", 5)
    slow = slow_of(profile(Target("support.stalling:make", {"at": 1_020, "seconds": 0.1}), STEPS))
    assert (slow.calls, slow.missed) == (STEPS, 0)
    assert 1_020 in [step.step for step in slow.steps]
    monkeypatch.setattr(module, "STEPS_BYTES", 1_000)
    batch = slow_of(profile(Target("grid/toy", {"num_envs": 2, "agents": 3}), 2 * STEPS))
    assert batch.calls == STEPS


def test_what_the_log_had_no_room_for_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVENTS", 20)
    monkeypatch.setattr(module, "FIRST_CALLS", 100)
    assert slow_of(profile(Target("support.stalling:make", {}), STEPS)).missed > 0


def test_a_loop_with_native_steps_has_their_phases_in_its_slow_steps() -> None:
    slow = slow_of(profile(Target("gym:hotloop/grid-toy-v0", {}), STEPS))
    place = "wall/env.step/HotloopEnv.step/native step"
    assert all(place in step.phases for step in slow.steps)
    assert all(step.phases[f"{place}/observations"] <= step.phases[place] for step in slow.steps)


def test_a_live_policy_is_among_the_phases() -> None:
    slow = slow_of(
        profile(Target("grid/toy", {"num_envs": 1, "agents": 1}), STEPS, policy="support.stalling:idle")
    )
    assert all({"wall/policy", "wall/env.step"} <= set(step.phases) for step in slow.steps)


def test_the_cost_of_a_mark_is_in_the_record() -> None:
    for target in ("support.stalling:make", "grid/toy"):
        overhead = profile(Target(target, {}), STEPS).overhead
        assert overhead is not None
        assert overhead.mark_ns is not None
        assert overhead.mark_ns > 0


def test_the_record_says_how_to_come_to_a_step_again() -> None:
    slow = slow_of(profile(Target("support.stalling:make", {"at": "7"}), STEPS))
    assert (slow.target, slow.given, slow.policy) == ("support.stalling:make", {"at": "7"}, "random")
    assert sum(played * times for _, played, times in slow.draws) == WARMUP + STEPS
    assert {step.check_step % 100 for step in slow.steps} == {0}
