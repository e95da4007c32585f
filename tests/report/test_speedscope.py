"""A speedscope file against its schema, field by field."""

import json
from typing import Any

import pytest

from hotloop.core.spans.trace import Slice, Trace
from hotloop.core.target import Target
from hotloop.lab.profile.profile import profile
from hotloop.lab.profile.trace import Tracer
from hotloop.report.speedscope import draw_speedscope


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotloop.lab.profile.profile.WARMUP", 100)


TRACE = Trace(
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


def drawn(trace: Trace) -> dict[str, Any]:
    file: dict[str, Any] = json.loads(draw_speedscope(trace))
    return file


def assert_valid(file: dict[str, Any]) -> None:
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
    file = drawn(TRACE)
    assert_valid(file)
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
    assert_valid(drawn(Trace(tracks={}, slices=(), slow={}, about={})))


@pytest.mark.parametrize("target", ["support.stalling:litter", "grid/toy"])
def test_a_real_one_is_valid(target: str) -> None:
    tracer = Tracer()
    record = profile(Target(target, {}), 2_000, tracer=tracer)
    assert_valid(drawn(tracer.trace(record.slow, {})))
