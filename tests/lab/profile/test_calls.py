import numpy as np
from support.logged import events_of, laps_of, steps_of

from hotloop.lab.profile.calls import Calls, call_of, calls_of_batch, calls_of_loop

NONE = np.zeros(2, np.int64)


def phases(calls: Calls, call: int) -> dict[str, int]:
    return calls.phases(call)


def test_a_batch_call_lasts_until_the_next_begins_and_the_last_until_the_end() -> None:
    calls = calls_of_batch(steps_of((100, 180), (200, 290)), events_of(), 310)
    assert calls.wall_ns.tolist() == [100, 110]
    assert phases(calls, 0) == {
        "wall": 100,
        "wall/python": 20,
        "wall/step": 80,
        "wall/step/reset": 10,
        "wall/step/actions": 20,
    }
    assert phases(calls, 1)["wall/python"] == 20


def test_a_stretch_without_calls_is_empty() -> None:
    calls = calls_of_batch(steps_of(), events_of(("garbage collection", 5, 6)), 310)
    assert len(calls) == 0
    assert calls.gc.call.tolist() == [-1]


def test_phases_of_several_workers_are_their_mean() -> None:
    calls = calls_of_batch(steps_of((0, 90), workers=2), events_of(), 100)
    assert phases(calls, 0)["wall/step/actions"] == 30


def test_the_env_is_named_where_one_alone_was_reset() -> None:
    steps = steps_of((0, 1), (2, 3), (4, 5), ended=(0, 1, 2), first=(-1, 7, 3))
    calls = calls_of_batch(steps, events_of(), 6)
    assert calls.resets.tolist() == [0, 1, 2]
    assert calls.env.tolist() == [-1, 7, -1]


def test_spans_of_the_loop_are_charged_to_the_lap_they_began_in() -> None:
    events = events_of(
        ("loop/policy", 110, 120),
        ("loop/env.step", 120, 170),
        ("loop/env.step/physics", 130, 150),
        ("loop/env.step", 210, 240),
        ("loop", 90, 320),
        ("elsewhere", 110, 150),
    )
    calls = calls_of_loop(laps_of(100, 200, 300), events, None, NONE)
    assert phases(calls, 0) == {
        "wall": 100,
        "wall/policy": 10,
        "wall/env.step": 50,
        "wall/env.step/physics": 20,
        "wall/everything else": 40,
    }
    assert phases(calls, 1) == {"wall": 100, "wall/env.step": 30, "wall/everything else": 70}


def test_what_was_before_the_first_lap_and_after_the_last_is_in_no_call() -> None:
    events = events_of(("loop/env.step", 10, 20), ("loop/env.step", 310, 320))
    calls = calls_of_loop(laps_of(100, 200, 300), events, None, NONE)
    assert phases(calls, 0) == {"wall": 100, "wall/everything else": 100}


def test_native_steps_stand_below_the_step_of_the_loop() -> None:
    events = events_of(("loop/env.step", 110, 190), ("loop/env.step/HotloopEnv.step", 115, 185))
    calls = calls_of_loop(laps_of(100, 200), events, steps_of((120, 180), ended=(1,), first=(4,)), NONE[:1])
    place = "wall/env.step/HotloopEnv.step/native step"
    assert phases(calls, 0)[place] == 60
    assert phases(calls, 0)[f"{place}/actions"] == 20
    assert calls.env.tolist() == [4]


def test_pauses_of_the_collector_are_found_wherever_they_are() -> None:
    events = events_of(
        ("loop/env.step/garbage collection", 110, 130),
        ("garbage collection", 210, 215),
        ("garbage collection", 900, 910),
    )
    gc = calls_of_loop(laps_of(100, 200, 300), events, None, NONE).gc
    assert gc.ns.tolist() == [20, 5, 10]
    assert gc.call.tolist() == [0, 1, -1]


def test_the_call_of_a_time() -> None:
    begin, end = np.array([10, 20]), np.array([15, 30])
    assert call_of(begin, end, np.array([9, 10, 14, 17, 20, 30, 31])).tolist() == [-1, 0, 0, -1, 1, 1, -1]
