"""`span(name, device=True)`: a region that also says how long a GPU's stream was in it, outside a run, too.

    with hotloop.span("learn", device=True):
        loss.backward()
    print(hotloop.spans.text())

A host's clock sees how long the work took to queue. Such a span puts an event on torch's stream where it
begins and where it ends, and waits for neither: they are read when somebody asks for the rows. Inside a
`hotloop.run` on a GPU every span is timed in that way already, and this one is like any other.
"""

import sys
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, Self, TypeVar

from hotloop.core import spans
from hotloop.core.spans.timed import timed

P = ParamSpec("P")

R = TypeVar("R")

# Pairs of events that wait to be read; from there on those that the device has passed are read.
MOST_WAITING = 4_096


class DeviceSpan:
    """See `span`: a context manager and a decorator, which may be entered again inside itself."""

    def __init__(self, name: str) -> None:
        self._region = spans.span(name)
        self._begun = threading.local()

    def __enter__(self) -> Self:
        self._region.__enter__()
        path = "/".join(spans.opened())
        self._stack().append((path, ROWS.event()))
        return self

    def __exit__(self, *_: object) -> None:
        path, begin = self._stack().pop()
        end = ROWS.event() if begin is not None else None
        self._region.__exit__(None, None, None)
        if begin is not None and end is not None:
            ROWS.add(path, begin, end)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        return timed(self, function)

    def _stack(self) -> list[tuple[str, Any]]:
        if not hasattr(self._begun, "stack"):
            self._begun.stack = []
        stack: list[tuple[str, Any]] = self._begun.stack
        return stack


class DeviceRows:
    """Calls and nanoseconds by path, of the regions whose events the device has passed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        """Begin with nothing; what waits to be read is forgotten."""
        with self._lock:
            self._totals: dict[str, tuple[int, int]] = {}
            self._waiting: list[tuple[str, Any, Any]] = []

    def event(self) -> Any:
        """A point behind the work queued so far; None where nothing is timed, or no GPU is in use."""
        torch: Any = sys.modules.get("torch")
        if torch is None or not spans.enabled() or spans.watched() or not torch.cuda.is_initialized():
            return None
        made = torch.cuda.Event(enable_timing=True)
        made.record()
        return made

    def add(self, path: str, begin: Any, end: Any) -> None:
        with self._lock:
            self._waiting.append((path, begin, end))
            if len(self._waiting) >= MOST_WAITING:
                self._read([each for each in self._waiting if each[2].query()])

    def read(self) -> dict[str, tuple[int, int]]:
        """Of every path, calls and nanoseconds; waits for the last event."""
        with self._lock:
            for _, _, end in self._waiting[-1:]:
                end.synchronize()
            self._read([each for each in self._waiting if each[2].query()])
            return dict(self._totals)

    def _read(self, passed: list[tuple[str, Any, Any]]) -> None:
        for path, begin, end in passed:
            calls, ns = self._totals.get(path, (0, 0))
            self._totals[path] = calls + 1, ns + round(begin.elapsed_time(end) * 1e6)
        done = {id(each) for each in passed}
        self._waiting = [each for each in self._waiting if id(each) not in done]


ROWS = DeviceRows()


def device_span(name: str, *, device: bool = False) -> Any:
    """The region of a name; timed on the device, too, where that is asked for."""
    return DeviceSpan(name) if device else spans.span(name)
