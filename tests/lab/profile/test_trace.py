from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logged import events_of, laps_of, steps_of
from support.profiles import profile

from hotloop.core.record.profile import Slow
from hotloop.core.settings import Target
from hotloop.core.time_tree import MAIN, Slice, Trace
from hotloop.lab.profile import trace as module
from hotloop.lab.profile.calls import calls_of_batch, calls_of_loop
from hotloop.lab.profile.profile import PAIRS
from hotloop.lab.profile.slow import SlowestCalls
from hotloop.lab.profile.trace import FIRST_WORKER, Tracer, nest

STEPS = PAIRS * 40


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotloop.lab.profile.profile.WARMUP", 50)


def piece(name: str, begin: int, end: int, track: int = MAIN) -> Slice:
    return Slice(name, begin, end, track, "span", {})


def assert_nested(slices: tuple[Slice, ...]) -> None:
    """Slices of a track come in order, and each lies inside the one around it or after it."""
    tracks = defaultdict(list)
    for each in slices:
        tracks[each.track].append(each)
    for inside in tracks.values():
        open_: list[Slice] = []
        for before, each in zip([inside[0], *inside], inside, strict=False):
            assert before.begin_ns <= each.begin_ns < each.end_ns
            while open_ and open_[-1].end_ns <= each.begin_ns:
                open_.pop()
            assert not open_ or each.end_ns <= open_[-1].end_ns
            open_.append(each)


def children(trace: Trace, parent: Slice) -> list[Slice]:
    """What lies directly inside a slice of the main thread."""
    found: list[Slice] = []
    for each in trace.slices:
        inside = (
            each.track == parent.track and parent.begin_ns <= each.begin_ns <= each.end_ns <= parent.end_ns
        )
        if inside and each is not parent and (not found or each.begin_ns >= found[-1].end_ns):
            found.append(each)
    return found


def traced(target: str, **given: object) -> tuple[Trace, Slow]:
    tracer = Tracer()
    policy = given.pop("policy", "random")
    record = profile(Target(target, given), STEPS, policy=policy, tracer=tracer)
    assert record.slow is not None
    return tracer.trace(record.slow, {"target": target}), record.slow


def test_a_step_holds_its_spans_and_its_native_phases() -> None:
    tracer = Tracer()
    events = events_of(("loop/env.step", 110, 190), ("loop", 90, 400), ("loop/env.step/inner", 115, 185))
    calls = calls_of_loop(laps_of(100, 200), events, steps_of((120, 180)), np.zeros(1, np.int64))
    tracer.add(calls, events, steps_of((120, 180)), 41, [])
    assert [(each.name, each.begin_ns, each.end_ns) for each in tracer.trace(None, {}).slices] == [
        ("step", 100, 200),
        ("env.step", 110, 190),
        ("inner", 115, 185),
        ("native step", 120, 180),
        ("reset", 120, 130),
        ("actions", 130, 150),
    ]
    assert tracer.trace(None, {}).slices[0].facts == {"step": 42, "resets": 0}


def test_workers_have_tracks_of_their_own_and_threads_too() -> None:
    tracer = Tracer()
    steps = steps_of((100, 130), workers=2)
    events = events_of(("helper", 105, 110), threads={"helper": 1})
    tracer.add(calls_of_batch(steps, events, 140), events, steps, 0, [])
    trace = tracer.trace(None, {})
    assert trace.tracks == {MAIN: "main thread", 1: "thread 1", FIRST_WORKER + 1: "native worker 1"}
    there = [
        (each.name, each.begin_ns, each.end_ns) for each in trace.slices if each.track == FIRST_WORKER + 1
    ]
    assert there == [("reset", 100, 120), ("actions", 120, 130)], "no phase reaches beyond its step"


def test_a_window_holds_whole_calls_and_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WINDOW_SLICES", 9)
    steps = steps_of(*((at, at + 50) for at in range(0, 1_000, 100)))
    tracer = Tracer()
    tracer.add(calls_of_batch(steps, events_of(), 1_000), events_of(), steps, 0, [])
    trace = tracer.trace(None, {})
    assert trace.about["sampled_steps"] == 2
    assert len(trace.slices) == 8


def test_a_trace_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SLICES", 30)
    trace, slow = traced("support.stalling:make")
    kept = len(slow.steps) + len(slow.resets)
    assert trace.about["sampled_steps"] <= 30
    assert len(trace.slices) <= 30 + 3 * kept


def test_slow_calls_outside_the_window_are_in_the_trace_while_they_are_among_the_slowest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "WINDOW_SLICES", 1)
    tracer, keeper = Tracer(), SlowestCalls(seed=1, num_envs=1)
    before = 0
    for lengths in ([1] * 5 + [50], [2] + [900] * 10 + [2] * 20):
        laps = laps_of(*np.cumsum([before * 1_000, *lengths]).tolist())
        calls = calls_of_loop(laps, events_of(), None, np.zeros(len(lengths), np.int64))
        tracer.add(calls, events_of(), None, before, keeper.add(calls, before, (0, "")))
        before += len(lengths)
    steps, _, _ = keeper.ranked()
    slow = Slow(relative_error=0.1, calls=before, steps=steps, target="", given={}, policy="")
    trace = tracer.trace(slow, {})
    drawn = [each.facts["step"] for each in trace.slices]
    assert drawn == [1, 7, *range(8, 18)]
    assert trace.slow.keys() == {step.rank for step in steps}


@pytest.mark.parametrize(
    ("target", "given"),
    [
        ("support.stalling:litter", {}),
        ("gym:hotloop/grid-toy-v0", {}),
        ("grid/toy", {"num_envs": 4, "agents": 3}),
        ("grid/toy", {"num_envs": 64, "agents": 3, "threads": 2}),
        ("grid/toy", {"num_envs": 2, "agents": 3, "impl": "reference"}),
        ("gym:CartPole-v1", {"num_envs": 2, "vector": "async"}),
        ("support.theirs:make", {"policy": "support.theirs:TwoParts"}),
    ],
)
def test_the_nesting_of_a_real_trace_adds_up(target: str, given: dict[str, object]) -> None:
    trace, slow = traced(target, **given)
    assert_nested(trace.slices)
    steps = [each for each in trace.slices if each.category == "step"]
    assert len({each.facts["step"] for each in steps}) == len(steps)
    listed = {step.step: step for step in (*slow.steps, *slow.resets)}
    for each in steps[:40]:
        inside = children(trace, each)
        assert inside
        assert sum(child.end_ns - child.begin_ns for child in inside) <= each.end_ns - each.begin_ns
    for each in steps:
        known = listed.get(each.facts["step"])
        assert known is None or known.wall_ns == each.end_ns - each.begin_ns
    assert set(trace.slow) == {step.rank for step in listed.values()}


def test_pauses_of_the_collector_are_slices_of_their_own() -> None:
    trace, _ = traced("support.stalling:litter")
    pauses = [each for each in trace.slices if each.category == "gc"]
    assert pauses
    assert {each.name for each in pauses} == {"garbage collection"}


def test_chains_of_marks_that_overlap_are_cut() -> None:
    slices = [piece("a", 0, 5), piece("b", 2, 10), piece("c", 3, 7), piece("d", 20, 21), piece("e", 2, 4)]
    done = tuple(nest(slices))
    assert_nested(done)
    assert {(each.name, each.begin_ns, each.end_ns) for each in done} >= {
        ("a", 0, 5),
        ("b", 5, 10),
        ("e", 2, 4),
    }


pieces = st.builds(
    lambda begin, length, track: piece("x", begin, begin + length, track),
    st.integers(0, 40),
    st.integers(1, 30),
    st.integers(0, 1),
)


@given(st.lists(pieces, min_size=1, max_size=30))
def test_whatever_is_given_comes_out_nested_and_ends_when_it_did(given_slices):
    done = tuple(nest(given_slices))
    assert_nested(done)
    whole = {(each.track, each.end_ns) for each in given_slices}
    assert {(each.track, each.end_ns) for each in done} <= whole
