"""A trace as files that others open: trace-event JSON for Perfetto and chrome://tracing, and speedscope's."""

import json
from collections.abc import Iterator
from typing import Any

from hotloop.core.spans.trace import MAIN, Slice, Trace

PROCESS = 1
MOST_BYTES = 48_000_000  # Of a file; Perfetto takes more, a browser does not like it
SCHEMA = "https://www.speedscope.app/file-format-schema.json"

Event = dict[str, Any]


def draw_trace(trace: Trace) -> str:
    """The whole file of trace events, one a line."""
    start_ns = min((each.begin_ns for each in trace.slices), default=0)
    lines: list[str] = []
    size = left_out = 0
    for event in (*names(trace), *slow_steps(trace, start_ns), *slices(trace, start_ns)):
        line = json.dumps(event, separators=(",", ":"))
        size += len(line) + 2
        if size < MOST_BYTES:
            lines.append(line)
        else:
            left_out += 1
    about = json.dumps({**trace.about, "left_out_events": left_out})
    events = ",\n".join(lines)
    return f'{{"displayTimeUnit":"ns",\n"otherData":{about},\n"traceEvents":[\n{events}\n]}}\n'


def title(trace: Trace) -> str:
    """What was traced, by the command that did it."""
    return f"hotloop {trace.about.get('command', 'profile')} {trace.about.get('target', '')}".rstrip()


def names(trace: Trace) -> Iterator[Event]:
    """The names of the process and its threads, in the order they are shown."""
    process = {"ph": "M", "pid": PROCESS, "tid": MAIN, "name": "process_name"}
    yield {**process, "args": {"name": title(trace)}}
    for order, (track, name) in enumerate(trace.tracks.items()):
        thread = {"ph": "M", "pid": PROCESS, "tid": track}
        yield {**thread, "name": "thread_name", "args": {"name": name}}
        yield {**thread, "name": "thread_sort_index", "args": {"sort_index": order}}


def slow_steps(trace: Trace, start_ns: int) -> Iterator[Event]:
    """A flag at each of the slowest steps."""
    for rank, begin_ns in trace.slow.items():
        yield {
            "ph": "i",
            "s": "t",
            "pid": PROCESS,
            "tid": MAIN,
            "ts": micros(begin_ns - start_ns),
            "name": f"slow step #{rank}",
            "cat": "slow",
        }


def slices(trace: Trace, start_ns: int) -> Iterator[Event]:
    return (complete(each, start_ns) for each in trace.slices)


def complete(each: Slice, start_ns: int) -> Event:
    event: Event = {
        "ph": "X",
        "pid": PROCESS,
        "tid": each.track,
        "ts": micros(each.begin_ns - start_ns),
        "dur": micros(each.end_ns - each.begin_ns),
        "name": each.name,
        "cat": each.category,
    }
    return {**event, "args": dict(each.facts)} if each.facts else event


def micros(ns: int) -> float:
    """Microseconds, to the nanosecond."""
    return round(ns / 1e3, 3)


def draw_speedscope(trace: Trace) -> str:
    """The whole file of speedscope: one profile a thread, opened and closed frames in order."""
    frames: dict[str, int] = {}
    profiles = [
        thread_profile(name, [each for each in trace.slices if each.track == track], frames)
        for track, name in trace.tracks.items()
    ]
    file = {
        "$schema": SCHEMA,
        "name": title(trace),
        "exporter": "hotloop",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in frames]},
        "profiles": profiles,
    }
    return json.dumps(file, separators=(",", ":")) + "\n"


def thread_profile(name: str, slices: list[Slice], frames: dict[str, int]) -> dict[str, Any]:
    """One thread; times count from its first slice, and what was not sampled is a gap."""
    start_ns = min((each.begin_ns for each in slices), default=0)
    events = list(opened_and_closed(slices, start_ns, frames))
    return {
        "type": "evented",
        "name": name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": events[-1]["at"] if events else 0,
        "events": events,
    }


def opened_and_closed(slices: list[Slice], start_ns: int, frames: dict[str, int]) -> Iterator[Event]:
    """Each slice opened and closed once, the innermost closed first."""
    open_: list[tuple[int, int]] = []
    for each in slices:
        while open_ and open_[-1][1] <= each.begin_ns:
            yield closed(open_.pop(), start_ns)
        frame = frames.setdefault(each.name, len(frames))
        yield {"type": "O", "frame": frame, "at": each.begin_ns - start_ns}
        open_.append((frame, each.end_ns))
    while open_:
        yield closed(open_.pop(), start_ns)


def closed(frame: tuple[int, int], start_ns: int) -> Event:
    return {"type": "C", "frame": frame[0], "at": frame[1] - start_ns}
