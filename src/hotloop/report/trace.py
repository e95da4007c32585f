"""A trace as trace-event JSON, which Perfetto and chrome://tracing open."""

import json
from collections.abc import Iterator
from typing import Any

from hotloop.core.spans.trace import MAIN, Slice, Trace

PROCESS = 1
MOST_BYTES = 48_000_000
"""Of a file; Perfetto takes more, a browser does not like it."""

Event = dict[str, Any]


def draw_trace(trace: Trace) -> str:
    """The whole file, one event a line."""
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


def names(trace: Trace) -> Iterator[Event]:
    """The names of the process and its threads, in the order they are shown."""
    process = {"ph": "M", "pid": PROCESS, "tid": MAIN, "name": "process_name"}
    yield {**process, "args": {"name": f"hotloop profile {trace.about.get('target', '')}".rstrip()}}
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
