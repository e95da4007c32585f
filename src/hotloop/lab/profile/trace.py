"""A trace: sampled steps as slices of time, by thread, nested as the code was, torch's own beside them."""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import Any

import numpy as np

from hotloop.core.clock import epoch_ns
from hotloop.core.errors import SetupError
from hotloop.core.record.profile import OWN_STEP, Slow
from hotloop.core.time_tree import MAIN, Slice, Trace
from hotloop.lab.measure.sides import GC
from hotloop.lab.profile.calls import LOOP, Calls, Events, Steps, call_of

WINDOW_SLICES = 4_000  # Of one stretch of calls: its first calls, as many as fit
MOST_SLICES = 160_000  # Of a trace, the slowest steps not counted; a slice takes about 150 bytes of a file
STEP, SPAN, PHASE, PAUSE = "step", "span", "native phase", "gc"  # Categories
FIRST_WORKER = 1_000  # Tracks from here on are native workers; worker 0 is the thread that calls

# What a reader of a trace must know.
ABOUT = {
    "sampling": "the first calls of every stretch of a pass, and the slowest calls of all",
    "native_phases": "a step's phases are drawn one after another, each as long as it took in all: "
    "envs go through the phases in tiles, so that phases alternate within a step",
}

CATEGORY = "torch"

FIRST_TRACK = 2_000

MOST_BYTES = 20_000_000  # Of torch's own trace

DRAWN = ("cpu_op", "user_annotation", "kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver")


@dataclass(slots=True)
class Tracer:
    """Keeps the first calls of every stretch, and the slowest calls of all."""

    _windows: list[Slice] = field(default_factory=list)
    _sampled: set[int] = field(default_factory=set)  # Steps that a window holds
    _slow: dict[int, list[Slice]] = field(default_factory=dict)  # Step to its slices
    _foreign: list[Slice] = field(default_factory=list)  # What another profiler saw, already on our clock
    _tracks: dict[int, str] = field(default_factory=dict)
    _about: dict[str, Any] = field(default_factory=dict)

    def add(self, calls: Calls, events: Events, steps: Steps | None, before: int, kept: list[int]) -> None:
        """Sample a stretch that began after step `before`; `kept` are its calls among the slowest."""
        drawing = TraceWriter(calls, events, steps, before)
        room = min(WINDOW_SLICES, MOST_SLICES - len(self._windows))
        window = int(np.searchsorted(np.cumsum(drawing.sizes()), room, side="right"))
        self._windows += drawing.draw(0, window)
        self._sampled |= set(range(before + 1, before + window + 1))
        for call in kept:
            if call >= window:
                self._slow[before + call + 1] = drawing.draw(call, call + 1)

    def merge(self, slices: Iterable[Slice], tracks: Mapping[int, str], **about: Any) -> None:
        """Take in what another profiler saw."""
        self._foreign += slices
        self._tracks |= tracks
        self._about |= about

    def trace(self, slow: Slow | None, about: Mapping[str, Any]) -> Trace:
        """The finished trace; `slow` says which of the slow calls are still among the slowest."""
        listed = [*slow.steps, *slow.resets] if slow else []
        chosen = [*self._windows, *self._foreign]
        for step in listed:
            chosen += self._slow.get(step.step, [])
        begins = {each.facts["step"]: each.begin_ns for each in chosen if each.category == STEP}
        nested = tuple(nest(chosen))
        return Trace(
            tracks=names_of({each.track for each in nested}) | self._tracks,
            slices=nested,
            slow={step.rank: begins[step.step] for step in listed if step.step in begins},
            about={**about, **ABOUT, **self._about, "sampled_steps": len(self._sampled)},
        )


class TraceWriter:
    """The slices of a stretch."""

    def __init__(self, calls: Calls, events: Events, steps: Steps | None, before: int) -> None:
        drawn = np.array([path != LOOP for path in events.paths], bool)
        self._calls, self._steps, self._before = calls, steps, before
        self._events = events.chosen(drawn[events.place] if len(drawn) else slice(0))
        self._event_call = call_of(calls.begin, calls.end, self._events.begin)
        self._step_call = None if steps is None else call_of(calls.begin, calls.end, steps.begin)

    def sizes(self) -> Any:
        """How many slices each call makes."""
        count = len(self._calls)
        sizes = 1 + np.bincount(self._event_call[self._event_call >= 0], minlength=count)
        if self._steps is not None and self._step_call is not None:
            inside = np.bincount(self._step_call[self._step_call >= 0], minlength=count)
            sizes = sizes + inside * (1 + self._steps.phases.shape[1] * self._steps.phases.shape[2])
        return sizes

    def draw(self, first: int, last: int) -> list[Slice]:
        """The slices of some calls, one after another."""
        slices, calls, events = list[Slice](), self._calls, self._events
        for call in range(first, last):
            facts = {"step": self._before + call + 1, "resets": int(calls.resets[call])}
            begin_ns, end_ns = int(calls.begin[call]), int(calls.end[call])
            slices.append(Slice("step", begin_ns, end_ns, MAIN, STEP, facts))
        here = (self._event_call >= first) & (self._event_call < last)
        columns = (column[here].tolist() for column in (events.place, events.begin, events.end))
        for place, begin, end in zip(*columns, strict=True):
            name = events.paths[place].rpartition("/")[2]
            thread = int(events.threads[place])
            slices.append(Slice(name, begin, end, thread, PAUSE if name == GC else SPAN, {}))
        return [*slices, *self._native_slices(first, last)]

    def _native_slices(self, first: int, last: int) -> Iterator[Slice]:
        """A step's phases as slices one after another: worlds are worked on in tiles, phase by phase."""
        steps, inside = self._steps, self._step_call
        if steps is None or inside is None:
            return
        for row in np.flatnonzero((inside >= first) & (inside < last)).tolist():
            begin, end = int(steps.begin[row]), int(steps.end[row])
            yield Slice(steps.whole or OWN_STEP, begin, end, MAIN, PHASE, {})
            for worker in range(steps.workers):
                track = MAIN if worker == 0 else FIRST_WORKER + worker
                at = begin
                for name, ns in zip(steps.names, steps.phases[row, worker].tolist(), strict=True):
                    upto = min(at + ns, end)
                    if upto > at:
                        yield Slice(name, at, upto, track, PHASE, {})
                    at = upto


def nest(slices: Iterable[Slice]) -> Iterator[Slice]:
    """Put slices in order and make each lie inside what is around it.

    Only marks of two chains can overlap without one holding the other: the later one then begins where the
    earlier ends.
    """
    waiting = [(each.track, each.begin_ns, -each.end_ns, order, each) for order, each in enumerate(slices)]
    heapify(waiting)
    open_: list[Slice] = []
    while waiting:
        track, begin_ns, minus_end, order, each = heappop(waiting)
        while open_ and (open_[-1].track != track or open_[-1].end_ns <= begin_ns):
            open_.pop()
        if open_ and open_[-1].end_ns < each.end_ns:
            heappush(waiting, (track, open_[-1].end_ns, minus_end, order, each))
            continue
        open_.append(each._replace(begin_ns=begin_ns))
        yield open_[-1]


def names_of(tracks: set[int]) -> dict[int, str]:
    """What the threads are called."""
    return {
        track: "main thread"
        if track == MAIN
        else f"native worker {track - FIRST_WORKER}"
        if track > FIRST_WORKER
        else f"thread {track}"
        for track in sorted(tracks)
    }


def watch_torch(play: Callable[[], None], tracer: Tracer) -> None:
    """Play calls one by one under torch's profiler and give the tracer what it saw.

    A window that caught nothing is said in the trace: the steps themselves are in it all the same.
    """
    from hotloop.probes.torch import ACTIVE, WAIT, WARMUP, TorchWindow

    zero_ns = epoch_ns()
    with tempfile.TemporaryDirectory(prefix="hotloop-") as folder:
        path = Path(folder) / "torch.json"
        window = TorchWindow(path, most_bytes=MOST_BYTES)
        try:
            for _ in range(WAIT + WARMUP + ACTIVE):
                play()
                window.step()
        except SetupError as error:
            tracer.merge([], {}, torch=str(error))
            return
        merge_torch(json.loads(path.read_text(encoding="utf-8")), zero_ns, tracer)


def merge_torch(trace: Mapping[str, Any], zero_ns: int, tracer: Tracer) -> None:
    """Put torch's events onto tracks of their own; `zero_ns` is when our clock was zero."""
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X" and event.get("cat") in DRAWN]
    threads = {(event["pid"], event["tid"]) for event in events}
    tracks = {place: FIRST_TRACK + number for number, place in enumerate(sorted(threads, key=str))}
    base_ns = int(trace.get("baseTimeNanoseconds", 0)) - zero_ns
    slices = []
    for event in events:
        begin_ns, track = base_ns + round(event["ts"] * 1e3), tracks[event["pid"], event["tid"]]
        end_ns = begin_ns + round(event["dur"] * 1e3)
        slices.append(Slice(event["name"], begin_ns, end_ns, track, CATEGORY, {}))
    said = f"{len(slices)} events of torch.profiler, in steps that it slowed down; aligned to about 2 µs"
    tracer.merge(slices, {track: f"torch {tid}" for (_, tid), track in tracks.items()}, torch=said)
