"""A trace as a file that speedscope opens: one profile a thread, opened and closed frames in order."""

import json
from collections.abc import Iterator
from typing import Any

from hotloop.core.spans.trace import Slice, Trace

SCHEMA = "https://www.speedscope.app/file-format-schema.json"

Event = dict[str, Any]


def draw_speedscope(trace: Trace) -> str:
    """The whole file."""
    frames: dict[str, int] = {}
    profiles = [
        profile(name, [each for each in trace.slices if each.track == track], frames)
        for track, name in trace.tracks.items()
    ]
    target = trace.about.get("target", "")
    file = {
        "$schema": SCHEMA,
        "name": f"hotloop profile {target}".rstrip(),
        "exporter": "hotloop",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in frames]},
        "profiles": profiles,
    }
    return json.dumps(file, separators=(",", ":")) + "\n"


def profile(name: str, slices: list[Slice], frames: dict[str, int]) -> dict[str, Any]:
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
