"""A stream's time by its regions: windows are read late, events used again, other threads left out."""

from collections.abc import Iterator
from threading import Thread

import pytest
from support.device import Device

from hotloop.core import spans
from hotloop.core.spans import device as streams
from hotloop.core.spans import mark, span
from hotloop.core.spans.device import DeviceStream, StreamWindow
from hotloop.core.time_tree import TimeTree


@pytest.fixture
def device() -> Device:
    return Device()


@pytest.fixture
def stream(device: Device) -> Iterator[DeviceStream]:
    made = DeviceStream(device.event, device.wait)
    spans.watch(made)
    yield made
    spans.watch(None)
    spans.disable()


def ms(tops: tuple[TimeTree, ...]) -> dict[str, float]:
    return {row.path: row.total_ns / 1e6 for top in tops for row in top.walk()}


def read(stream: DeviceStream, device: Device, window: StreamWindow) -> dict[str, float]:
    device.wait()
    return ms(stream.tree_of(window))


def test_a_window_is_known_when_the_device_has_passed_it_and_nobody_waits(
    stream: DeviceStream, device: Device
) -> None:
    with span("matmul"):
        device.launch(40)
    ended = stream.turn()
    assert not ended.ready
    assert device.waits == 0
    device.think(50)
    assert ended.ready
    assert ms(stream.tree_of(ended)) == {"matmul": 40}
    assert device.waits == 0


def test_a_region_that_stays_open_goes_on_in_the_next_window(stream: DeviceStream, device: Device) -> None:
    with span("update"):
        device.think(3)
        first = stream.turn()
        device.think(4)
        with span("learn"):
            device.think(5)
    second = stream.turn()
    assert read(stream, device, first) == {"update": 3}
    assert read(stream, device, second) == {"update": 9, "update/learn": 5}
    assert (first.calls["update",], second.calls["update",]) == (1, 0)


def test_a_window_has_all_time_of_its_stream(stream: DeviceStream, device: Device) -> None:
    device.think(2)
    with span("a"):
        device.launch(7)
    device.think(20)
    ended = stream.turn()
    read(stream, device, ended)
    assert ended.wall_ns == 22e6


def test_events_are_used_again(stream: DeviceStream, device: Device) -> None:
    for _ in range(50):
        with span("a"):
            device.launch(1)
        read(stream, device, stream.turn())
    assert device.made < 10


def test_a_window_without_end_is_read_meanwhile(
    stream: DeviceStream, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MOST_PIECES", 8)
    for _ in range(100):
        with span("a"):
            device.think(1)
            mark("b")
    assert device.made < 20
    assert read(stream, device, stream.turn()) == {"a": 100, "a/b": 100}


def test_what_was_left_open_inside_ends_with_what_is_around_it(stream: DeviceStream, device: Device) -> None:
    with span("outer"):
        span("inner").__enter__()
        device.think(2)
    device.think(3)
    with span("after"):
        device.think(1)
    assert ms(stream.read()) == {"outer": 2, "outer/inner": 2, "after": 1}


def test_a_chain_of_marks_begins_where_it_is_started(stream: DeviceStream, device: Device) -> None:
    marks = spans.Marks(["a"])
    spans.enable()
    with span("outer"):
        device.think(2)
        marks.start()
        device.think(5)
        marks.mark(0)
    assert ms(stream.read()) == {"outer": 7, "outer/a": 5}


def test_other_threads_are_not_on_this_stream(stream: DeviceStream, device: Device) -> None:
    def other() -> None:
        with span("other"):
            mark("more")

    thread = Thread(target=other)
    thread.start()
    thread.join()
    assert stream.read() == ()
