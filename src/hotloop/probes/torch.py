"""Torch's own profiler: which operators and kernels ran, as a table and as a Chrome trace."""

import json
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from hotloop.core.errors import InputError, SetupError
from hotloop.core.files import give_name
from hotloop.core.record.profile import Finding, Table
from hotloop.core.registry import Probe, ProbeError, Scene, package_missing

if TYPE_CHECKING:
    from torch.autograd.profiler_util import EventList


WAIT, WARMUP, ACTIVE = 2, 2, 20  # Calls that are let by, calls that are thrown away, and calls that are kept
MOST_BYTES = 50_000_000  # Of a trace: what the viewers still open quickly

MOST_ROWS = 20

COLUMNS = ("operator", "calls", "self_cpu_ns", "total_cpu_ns", "self_device_ns")

# A level that nothing reaches of a log which would have a line on stderr for each start and stop.
QUIET = "99"

STEP = "ProfilerStep"  # What the names of the profiler's own marks begin with


class TorchWindow:
    """A stretch of a loop under torch's profiler: `step` once a turn; the trace is written when it is over.

    A window that caught nothing is a SetupError, and leaves no file. A trace that would be larger than
    `most_bytes` keeps its first events, and says how many it lost.
    """

    def __init__(
        self,
        path: Path,
        *,
        wait: int = WAIT,
        warmup: int = WARMUP,
        active: int = ACTIVE,
        record_shapes: bool = False,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        os.environ.setdefault("KINETO_LOG_LEVEL", QUIET)  # read when torch is first imported
        import torch

        check(path, wait=wait, warmup=warmup, active=active)
        self.path, self._most_bytes = path, most_bytes
        self.turns = 0
        self._wait, self._before, self._last = wait, wait + warmup, wait + warmup + active
        self.table: tuple[tuple[Any, ...], ...] = ()
        """Operators, the longest first, once the window is over; see COLUMNS."""
        self._is_open = True
        activities: Any = torch.profiler.supported_activities()  # type: ignore[no-untyped-call]
        schedule = torch.profiler.schedule(wait=wait, warmup=warmup, active=active, repeat=1)
        self._profiler = torch.profiler.profile(
            activities=sorted(activities, key=str),
            schedule=schedule,
            on_trace_ready=self._keep,
            record_shapes=record_shapes,
        )
        self._profiler.start()

    @property
    def is_over(self) -> bool:
        """Whether the trace is written, and further steps do nothing."""
        return not self._is_open

    @property
    def is_on(self) -> bool:
        """Whether the profiler looks at the turn that has begun, be it to warm up."""
        return self._is_open and self.turns >= self._wait

    def step(self) -> None:
        """End one turn of the loop; the last one of the window writes the trace."""
        if not self._is_open:
            return
        self.turns += 1
        self._profiler.step()
        if self.turns == self._last:
            self.close()

    def close(self) -> None:
        """End the window now, and write what it caught; does nothing where it is over."""
        if not self._is_open:
            return
        self._is_open = False
        self._profiler.stop()
        if not self.table:
            raise SetupError(self._nothing())

    def _nothing(self) -> str:
        if self.turns <= self._before:
            return (
                f"the torch window caught nothing: it ended after {self.turns} turns and begins after "
                f"{self._before}: run longer, or shorten wait and warmup"
            )
        return "the torch window caught nothing: no torch operator ran in it: look where torch is at work"

    def _keep(self, profiler: Any) -> None:
        """Write the trace of a window that caught something."""
        events = profiler.key_averages()
        rows = operators(events)
        if not rows or self.table:
            return
        temporary = self.path.with_name(f".{uuid4().hex}.json")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            profiler.export_chrome_trace(str(temporary))
            bound(temporary, self._most_bytes)
            give_name(temporary, self.path)
        finally:
            temporary.unlink(missing_ok=True)
        self.table = rows


class SpanRegions:
    """Gives the spans of each thread a row in the trace of torch's profiler; marks have none."""

    def __init__(self) -> None:
        self._here = threading.local()

    def open(self, name: str) -> None:
        from torch.profiler import record_function

        region = record_function(name)
        region.__enter__()  # type: ignore[no-untyped-call]
        self._regions.append((name, region))

    def close(self, name: str) -> None:
        """End the innermost region of a name and those inside it; a span from before the window has none."""
        if not any(each == name for each, _ in self._regions):
            return
        ended = None
        while ended != name:
            ended, region = self._regions.pop()
            region.__exit__(None, None, None)

    def mark(self, name: str) -> None:
        pass

    def start(self) -> None:
        pass

    @property
    def _regions(self) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = self._here.__dict__.setdefault("regions", [])
        return found


def check(path: Path, **turns: int) -> None:
    """Refuse a window that could catch nothing, or would overwrite."""
    for name, count in turns.items():
        least = 0 if name == "wait" else 1  # without a warm-up the first turn is that of the profiler itself
        if count < least:
            raise InputError(f"{name} is {count}: expected at least {least}")
    if path.exists():
        raise InputError(f"{path} exists and is never overwritten: give another name")


def operators(events: "EventList") -> tuple[tuple[Any, ...], ...]:
    """A row an operator, by its own time on CPU and device."""
    rows = [
        (
            event.key,
            event.count,
            round(event.self_cpu_time_total * 1e3),
            round(event.cpu_time_total * 1e3),
            round(event.self_device_time_total * 1e3),
        )
        for event in events
        if not event.key.startswith(STEP)
    ]
    return tuple(sorted(rows, key=lambda row: -(row[2] + row[4])))


def bound(path: Path, most_bytes: int) -> None:
    """Cut a trace down to the earliest of its events that fit, and say in it how many were left out."""
    size = path.stat().st_size
    if size <= most_bytes:
        return
    trace: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    about = [event for event in trace["traceEvents"] if "dur" not in event]
    timed = sorted(
        (event for event in trace["traceEvents"] if "dur" in event), key=lambda event: float(event["ts"])
    )
    trace["traceEvents"] = []
    room = most_bytes - len(json.dumps(trace)) - sum(len(json.dumps(event)) + 2 for event in about) - 64
    kept = []
    for event in timed:
        room -= len(json.dumps(event)) + 2
        if room < 0:
            break
        kept.append(event)
    trace["traceEvents"] = [*about, *kept]
    trace["hotloop_left_out"] = len(timed) - len(kept)
    path.write_text(json.dumps(trace), encoding="utf-8")


def look(scene: Scene) -> Finding:
    """Play the calls of a window one by one."""
    plays = [scene.draw(1) for _ in range(WAIT + WARMUP + ACTIVE)]
    window = TorchWindow(scene.folder / "torch.json", record_shapes=True)
    try:
        for play in plays:
            play()
            window.step()
    except SetupError:
        why = "torch's profiler caught nothing: no operator of torch ran in the loop"
        raise ProbeError(
            why, "let a policy of yours play that uses torch, with --policy module:callable"
        ) from None
    finally:
        if not window.is_over:
            with suppress(SetupError):  # the loop broke off; what was caught till then is not asked for
                window.close()
    return found_by(window, ACTIVE)


def found_by(window: TorchWindow, turns: int) -> Finding:
    """Return the operators of a window that is over, with the name of its trace."""
    return Finding(
        probe="torch",
        facts={"calls": turns, "operators": len(window.table)},
        tables=(Table(title="Operators of torch", columns=COLUMNS, rows=window.table[:MOST_ROWS]),),
        files=(window.path.name,),
    )


probe = Probe(
    name="torch",
    purpose="the operators and kernels of torch, with a Chrome trace",
    why_not=lambda: package_missing("torch"),
    look=look,
)
