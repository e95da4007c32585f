"""A trace against the trace-event format and against the schema of speedscope, field by field."""

import json
from collections import defaultdict
from typing import Any

import pytest
from support.profiles import profile

from hotloop.core.settings import Target
from hotloop.core.time_tree import Slice, Trace
from hotloop.lab.profile.trace import Tracer
from hotloop.report import files as module
from hotloop.report.files import draw_speedscope, draw_trace


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotloop.lab.profile.profile.WARMUP", 100)


TRACE = Trace(
    tracks={0: "main thread", 1001: "native worker 1"},
    slices=(
        Slice("step", 5_000, 9_000, 0, "step", {"step": 3, "resets": 0}),
        Slice("env.step", 5_100, 8_123, 0, "span", {}),
        Slice("actions", 5_200, 5_201, 1001, "native phase", {}),
    ),
    slow={2: 5_000},
    about={"target": "grid/toy", "sampling": "some"},
)

FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "M": {"ph": str, "pid": int, "tid": int, "name": str, "args": dict},
    "X": {
        "ph": str,
        "pid": int,
        "tid": int,
        "name": str,
        "cat": str,
        "ts": (int, float),
        "dur": (int, float),
    },
    "i": {"ph": str, "pid": int, "tid": int, "name": str, "cat": str, "ts": (int, float), "s": str},
}
"""What each kind of event must have, and of which type; X may have args beside."""


def events_of(trace: Trace) -> list[dict[str, Any]]:
    drawn = json.loads(draw_trace(trace))
    assert set(drawn) == {"displayTimeUnit", "otherData", "traceEvents"}
    assert drawn["displayTimeUnit"] in ("ns", "ms")
    events: list[dict[str, Any]] = drawn["traceEvents"]
    return events


def assert_valid(events: list[dict[str, Any]]) -> None:
    """Every event has the fields of its kind and no other; every thread is named once, before its events."""
    named: set[int] = set()
    for event in events:
        fields = FIELDS[event["ph"]]
        assert set(event) - {"args"} == set(fields) - {"args"}, event
        assert all(isinstance(event[field], kind) for field, kind in fields.items()), event
        assert not isinstance(event["tid"], bool)
        if event["ph"] == "M" and event["name"] == "thread_name":
            assert event["tid"] not in named
            named.add(event["tid"])
        if event["ph"] != "M":
            assert event["tid"] in named
            assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] > 0
            assert isinstance(event.get("args", {}), dict)
        if event["ph"] == "i":
            assert event["s"] in ("g", "p", "t")


def assert_adds_up(events: list[dict[str, Any]]) -> None:
    """On every thread each slice lies inside the one around it, and those inside are no longer than it."""
    tracks = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            tracks[event["tid"]].append((round(event["ts"] * 1e3), round(event["dur"] * 1e3)))
    for slices in tracks.values():
        open_: list[list[int]] = []
        for begin, length in sorted(slices, key=lambda each: (each[0], -each[1])):
            while open_ and open_[-1][0] <= begin:
                open_.pop()
            if open_:
                assert begin + length <= open_[-1][0]
                open_[-1][1] -= length
                assert open_[-1][1] >= 0
            open_.append([begin + length, length])


def test_the_fields_are_those_of_the_format() -> None:
    events = events_of(TRACE)
    assert_valid(events)
    assert_adds_up(events)


def test_times_are_microseconds_from_the_first_slice_to_the_nanosecond() -> None:
    slices = {event["name"]: event for event in events_of(TRACE) if event["ph"] == "X"}
    assert (slices["step"]["ts"], slices["step"]["dur"]) == (0, 4.0)
    assert (slices["env.step"]["ts"], slices["env.step"]["dur"]) == (0.1, 3.023)
    assert slices["step"]["args"] == {"step": 3, "resets": 0}


def test_threads_are_named_in_their_order() -> None:
    events = events_of(TRACE)
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    order = {e["tid"]: e["args"]["sort_index"] for e in events if e["name"] == "thread_sort_index"}
    assert names == {0: "main thread", 1001: "native worker 1"}
    assert order == {0: 0, 1001: 1}


def test_slow_steps_have_a_flag() -> None:
    (flag,) = [event for event in events_of(TRACE) if event["ph"] == "i"]
    assert (flag["name"], flag["ts"]) == ("slow step #2", 0)


def test_what_a_reader_must_know_is_in_it() -> None:
    about = json.loads(draw_trace(TRACE))["otherData"]
    assert about == {"target": "grid/toy", "sampling": "some", "left_out_events": 0}


def test_a_file_is_never_larger_than_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 600)
    text = draw_trace(TRACE)
    assert json.loads(text)["otherData"]["left_out_events"] > 0
    assert len(text) < 600 + 200
    assert module.MOST_BYTES < 50_000_000


def test_a_trace_of_nothing_is_a_trace() -> None:
    empty = Trace(tracks={}, slices=(), slow={}, about={})
    assert [event["name"] for event in events_of(empty)] == ["process_name"]


@pytest.mark.parametrize(
    ("target", "given"),
    [("support.stalling:litter", {}), ("grid/toy", {"num_envs": 64, "agents": 3, "threads": 2})],
)
def test_a_real_trace_is_valid_and_adds_up(target: str, given: dict[str, object]) -> None:
    tracer = Tracer()
    record = profile(Target(target, given), 2_000, tracer=tracer)
    events = events_of(tracer.trace(record.slow, {}))
    assert_valid(events)
    assert_adds_up(events)
    assert {"step"} <= {event["name"] for event in events}


NESTED = Trace(
    tracks={0: "main thread", 1: "thread 1"},
    slices=(
        Slice("step", 100, 200, 0, "step", {}),
        Slice("inner", 110, 150, 0, "span", {}),
        Slice("inner", 150, 200, 0, "span", {}),
        Slice("step", 200, 230, 0, "step", {}),
        Slice("other", 500, 510, 1, "span", {}),
    ),
    slow={},
    about={"target": "grid/toy"},
)


def speedscope(trace: Trace) -> dict[str, Any]:
    file: dict[str, Any] = json.loads(draw_speedscope(trace))
    return file


def assert_opens(file: dict[str, Any]) -> None:
    """What speedscope insists on: known frames, time that never goes back, a stack that fits."""
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = file["shared"]["frames"]
    assert all(set(frame) == {"name"} and frame["name"] for frame in frames)
    assert len({frame["name"] for frame in frames}) == len(frames)
    assert 0 <= file["activeProfileIndex"] <= max(0, len(file["profiles"]) - 1)
    for profile_ in file["profiles"]:
        assert set(profile_) == {"type", "name", "unit", "startValue", "endValue", "events"}
        assert (profile_["type"], profile_["unit"]) == ("evented", "nanoseconds")
        stack: list[int] = []
        at = profile_["startValue"]
        for event in profile_["events"]:
            assert set(event) == {"type", "frame", "at"}
            assert at <= event["at"] <= profile_["endValue"]
            at = event["at"]
            assert 0 <= event["frame"] < len(frames)
            if event["type"] == "O":
                stack.append(event["frame"])
            else:
                assert event["type"] == "C"
                assert stack.pop() == event["frame"]
        assert stack == []


def test_each_thread_is_a_profile_of_frames_that_open_and_close() -> None:
    file = speedscope(NESTED)
    assert_opens(file)
    assert [each["name"] for each in file["profiles"]] == ["main thread", "thread 1"]
    names = [frame["name"] for frame in file["shared"]["frames"]]
    main = [(event["type"], names[event["frame"]], event["at"]) for event in file["profiles"][0]["events"]]
    assert main == [
        ("O", "step", 0),
        ("O", "inner", 10),
        ("C", "inner", 50),
        ("O", "inner", 50),
        ("C", "inner", 100),
        ("C", "step", 100),
        ("O", "step", 100),
        ("C", "step", 130),
    ]


def test_a_file_of_nothing_is_one() -> None:
    assert_opens(speedscope(Trace(tracks={}, slices=(), slow={}, about={})))


@pytest.mark.parametrize("target", ["support.stalling:litter", "grid/toy"])
def test_a_real_speedscope_file_is_valid(target: str) -> None:
    tracer = Tracer()
    record = profile(Target(target, {}), 2_000, tracer=tracer)
    assert_opens(speedscope(tracer.trace(record.slow, {})))
