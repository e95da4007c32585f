"""Spans that are timed on a device, too: by events that nobody waits for before the rows are asked for."""

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.core import spans
from hotloop.core.spans import python
from hotloop.core.spans.device import Blocking, DeviceSpan

STREAM = SimpleNamespace(ms=0.0, waits=0, on=True)
"""A stream whose work takes as long as is said when it is queued."""


class Event:
    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        self.at = STREAM.ms

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        STREAM.waits += 1

    def elapsed_time(self, end: Any) -> float:
        return float(end.at - self.at)


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    STREAM.ms, STREAM.waits, STREAM.on = 0.0, 0, True
    torch = SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: STREAM.on, Event=Event))
    monkeypatch.setitem(sys.modules, "torch", torch)
    spans.enable()
    yield
    spans.watch(None)
    spans.disable()
    spans.enable()
    spans.disable()


def work(ms: float) -> None:
    STREAM.ms += ms


def rows() -> dict[str, tuple[int, float]]:
    return {row.path: (row.calls, row.total_ns / 1e6) for row in spans.device_tree()}


def test_what_was_queued_in_a_region_is_its_own() -> None:
    with spans.span("update"):
        for _ in range(3):
            with spans.span("learn", device=True):
                work(7)
            with spans.span("copy", device=True):
                work(1)
        work(100)
    assert STREAM.waits == 0
    assert rows() == {"update/learn": (3, 21.0), "update/copy": (3, 3.0)}
    assert STREAM.waits == 1
    assert {row.path for row in spans.tree()[0].walk()} == {"update", "update/learn", "update/copy"}
    assert "on the GPU's stream, by events" in spans.text()


def test_a_function_may_be_one_and_call_itself() -> None:
    @spans.span("deep", device=True)
    def deep(times: int) -> None:
        work(1)
        if times:
            deep(times - 1)

    deep(2)
    assert rows() == {"deep": (1, 3.0), "deep/deep": (1, 2.0), "deep/deep/deep": (1, 1.0)}


def test_enabling_begins_with_nothing_and_off_costs_no_event() -> None:
    with spans.span("before", device=True):
        work(1)
    spans.enable()
    spans.disable()
    with spans.span("off", device=True):
        work(1)
    assert rows() == {}


@pytest.mark.parametrize("why", ["no GPU is in use", "a run is told of every boundary"])
def test_it_is_a_span_like_any_other_where(why: str) -> None:
    if why == "no GPU is in use":
        STREAM.on = False
    else:
        spans.watch(Blocking(lambda: None))
    with spans.span("plain", device=True):
        work(1)
    assert rows() == {}
    assert spans.tree()[0].path == "plain"


def test_many_that_wait_are_read_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotloop.core.spans.device.MOST_WAITING", 2)
    for _ in range(5):
        with spans.span("short", device=True):
            work(1)
    assert rows() == {"short": (5, 5.0)}


def test_both_engines_take_the_word_and_no_other() -> None:
    assert isinstance(python.span("a", device=True), DeviceSpan)
    assert isinstance(spans.span("a", device=True), DeviceSpan)
    assert spans.span("a", device=False) is spans.span("a")
    with pytest.raises(TypeError):
        spans.span("a", gpu=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        spans.span(1, device=True)  # type: ignore[arg-type]
