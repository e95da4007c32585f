"""Regions on a GPU's stream, with events of a stream that runs behind its host."""

from collections.abc import Iterator
from typing import Any

import pytest

from hotloop.core import spans
from hotloop.train import timing
from hotloop.train.timing import Blocking, Stream, mark, span


class Device:
    """A stream: work is queued in no time of the host's, and done one after another."""

    def __init__(self) -> None:
        self.host_ms = 0.0
        self.busy_until_ms = 0.0
        self.waits = 0

    def launch(self, ms: float) -> None:
        self.busy_until_ms = max(self.busy_until_ms, self.host_ms) + ms

    def think(self, ms: float) -> None:
        """Work of the host."""
        self.host_ms += ms

    def wait(self) -> None:
        self.waits += 1
        self.host_ms = max(self.host_ms, self.busy_until_ms)

    def event(self) -> Any:
        device = self

        class Event:
            at_ms = -1.0

            def record(self) -> None:
                self.at_ms = max(device.busy_until_ms, device.host_ms)

            def elapsed_time(self, end: Any) -> float:
                assert device.waits, "an event is read only after the stream has passed it"
                return float(end.at_ms - self.at_ms)

        return Event()


@pytest.fixture
def device() -> Iterator[Device]:
    yield Device()
    timing.watch(None)
    spans.disable()


def test_work_of_the_device_is_charged_to_who_queued_it_and_not_to_who_waited(device: Device) -> None:
    stream = Stream(device.event, device.wait)
    timing.watch(stream)
    with span("learn"):
        device.launch(30)
        mark("forward")
        device.launch(60)
        mark("backward")
    with span("logging"):
        device.think(1)
        device.wait()
    tops = stream.read()
    rows = {row.path: row.total_ns for top in tops for row in top.walk()}
    assert rows == {
        "learn": 90_000_000,
        "learn/forward": 30_000_000,
        "learn/backward": 60_000_000,
        "logging": 0,
    }


def test_work_of_the_host_alone_is_time_of_the_stream_too(device: Device) -> None:
    stream = Stream(device.event, device.wait)
    timing.watch(stream)
    with span("rollout"):
        device.launch(2)
        device.wait()
        mark("student")
        device.think(5)
        mark("environment")
        device.think(1)
    (rollout,) = stream.read()
    assert [(row.path, row.total_ns) for row in rollout.walk()] == [
        ("rollout", 8_000_000),
        ("rollout/student", 2_000_000),
        ("rollout/environment", 5_000_000),
    ]
    assert rollout.self_ns == 1_000_000


def test_time_before_and_after_a_span_between_two_marks_is_the_marks(device: Device) -> None:
    stream = Stream(device.event, device.wait)
    timing.watch(stream)
    with span("rollout"):
        mark("student")
        device.think(1)
        with span("teacher"):
            device.think(10)
        device.think(2)
        mark("store")
    (rollout,) = stream.read()
    assert {row.path: (row.calls, row.total_ns) for row in rollout.children} == {
        "rollout/student": (1, 0),
        "rollout/teacher": (1, 10_000_000),
        "rollout/store": (1, 3_000_000),
    }


def test_the_tree_adds_up_over_many_turns_and_a_new_window_begins_empty(device: Device) -> None:
    stream = Stream(device.event, device.wait)
    timing.watch(stream)
    for _ in range(3):
        with span("learn"):
            for _ in range(4):
                device.launch(3)
                mark("forward")
            device.think(1)
    (learn,) = stream.read()
    assert (learn.calls, learn.children[0].calls) == (3, 12)
    assert learn.total_ns == learn.self_ns + learn.children[0].total_ns == 36_000_000
    stream.begin()
    assert stream.read() == ()


def test_the_events_make_the_same_tree_as_the_hosts_clock(device: Device) -> None:
    stream = Stream(device.event, device.wait)
    timing.watch(stream)
    spans.enable()
    for _ in range(2):
        with span("rollout"):
            mark("student")
            with span("teacher"), span("calls"):
                pass
            mark("store")
        with span("learn"):
            pass
    seen = [
        [(row.path, row.calls) for top in tops for row in top.walk()]
        for tops in (stream.read(), spans.tree())
    ]
    assert seen[0] == seen[1]


def test_a_region_that_is_still_open_counts_up_to_now(device: Device) -> None:
    stream = Stream(device.event, device.wait)
    timing.watch(stream)
    with span("rollout"):
        device.think(4)
        assert stream.read()[0].total_ns == 4_000_000


def test_waiting_at_every_boundary_is_told_to_the_device(device: Device) -> None:
    timing.watch(Blocking(device.wait))
    with span("learn"):
        mark("forward")
    assert device.waits == 3


def test_without_a_device_the_spans_are_the_hosts_own() -> None:
    assert span("learn") is spans.span("learn")
