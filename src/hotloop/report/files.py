"""What lies beside a record: its page, files and pictures of its probes, and its trace for other viewers."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from hotloop.core.record import Record, stacks
from hotloop.core.record.profile import Finding
from hotloop.core.time_tree import MAIN, Slice, Trace
from hotloop.report import html, markdown, shapes
from hotloop.report.kinds import train
from hotloop.report.kinds.profile import page
from hotloop.report.kinds.times import MOST_ROWS, RESOURCES
from hotloop.report.section import code_line, machine_line

# What the names of the files end in; the rest is the profile's, or the probe's.
TRACE, SPEEDSCOPE = ".trace.json", ".speedscope.json"

Kept = tuple[str, str | bytes]  # The suffix of a file beside a record, and its content


def folder_of(room: Path, target: str) -> Path:
    """Return where the probes of a target write, until it is known under which name their files are kept."""
    return room / re.sub(r"[^\w.-]+", "-", target)


def markdown_page(record: Record) -> str:
    """Return a profile as the Markdown page that the other files lie beside."""
    return markdown.draw_page(page(record, most=MOST_ROWS))


def run_page(record: Record) -> str:
    """Return a run of a user's own loop as its Markdown page."""
    return markdown.draw_page(train.run_page(record))


def pictured(target: str, folder: Path, found: Finding) -> Finding:
    """Draw the stacks that a probe saw; its finding then names the pictures too."""
    drawn = []
    for name in found.files:
        if name.endswith(SPEEDSCOPE):
            drawn.append(name.removesuffix(SPEEDSCOPE) + ".svg")
            picture = shapes.draw_flames(stacks.read(folder / name), f"{target}, {found.probe}")
            (folder / drawn[-1]).write_text(picture, encoding="utf-8")
    return replace(found, files=(*found.files, *drawn))


def files_beside(record: Record, folder: Path) -> list[Kept]:
    """Return all that lies beside the page; a web page only where a probe was asked for."""
    files = [name for found in record.findings for name in found.files]
    kept: list[Kept] = [(".json", record.to_json())]
    if any(found.probe != RESOURCES for found in record.findings):
        pictures = {}
        for found in record.findings:
            title = f"{found.probe}: click a box to zoom, the top one to go back"
            for name in found.files:
                if name.endswith(SPEEDSCOPE):
                    pictures[found.probe] = shapes.draw_flames(stacks.read(folder / name), title)
        kept.append((".html", html.draw_page(page(record, pictures))))
    return kept + [(f".{name}", (folder / name).read_bytes()) for name in files]


def difference_flames(record: Record) -> tuple[Record, list[Kept]]:
    """Return a record of the gate that names the flames of what changed, and the flames themselves."""
    kept: list[Kept] = []
    found = list(record.findings)
    for number, each in enumerate(found):
        then, now = (each.facts.get(f"stacks_{side}") for side in ("then", "now"))
        if then and now:
            before, after = (stacks.read(Path(file)) for file in (then, now))
            title = f"{record.target.words}: orange grew, blue shrank"
            kept.append((".difference.svg", shapes.draw_flames(after, title, before=before)))
            found[number] = replace(each, files=(*each.files, "difference.svg"))
    return replace(record, findings=tuple(found)), kept


def about_trace(record: Record) -> dict[str, Any]:
    """Return what a reader of a trace must know of the profile it is from."""
    return {
        "target": record.target.name,
        "run_id": record.run_id,
        "machine": machine_line(record.machine),
        "commit": code_line(record.code),
        "policy": record.method.policy,
    }


def trace_files(trace: Trace) -> list[Kept]:
    """Return a trace in the formats that others open."""
    return [(TRACE, draw_trace(trace)), (SPEEDSCOPE, draw_speedscope(trace))]


PROCESS = 1
MOST_BYTES = 48_000_000  # Of a file; Perfetto takes more, a browser does not like it
SCHEMA = "https://www.speedscope.app/file-format-schema.json"

Event = dict[str, Any]


def draw_trace(trace: Trace) -> str:
    """Return the whole file of trace events, one a line."""
    lines: list[str] = []
    size = left_out = 0
    for event in (*names(trace), *timed_events(trace)):
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
    """Return what was traced, by the command that did it."""
    return f"hotloop {trace.about.get('command', 'profile')} {trace.about.get('target', '')}".rstrip()


def names(trace: Trace) -> Iterator[Event]:
    """Yield the names of the process and its threads, in the order they are shown."""
    process = {"ph": "M", "pid": PROCESS, "tid": MAIN, "name": "process_name"}
    yield {**process, "args": {"name": title(trace)}}
    for order, (track, name) in enumerate(trace.tracks.items()):
        thread = {"ph": "M", "pid": PROCESS, "tid": track}
        yield {**thread, "name": "thread_name", "args": {"name": name}}
        yield {**thread, "name": "thread_sort_index", "args": {"sort_index": order}}


def timed_events(trace: Trace) -> Iterator[Event]:
    """Yield a flag at each of the slowest steps, then the slices."""
    start_ns = min((each.begin_ns for each in trace.slices), default=0)
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
    for each in trace.slices:
        yield {
            "ph": "X",
            "pid": PROCESS,
            "tid": each.track,
            "ts": micros(each.begin_ns - start_ns),
            "dur": micros(each.end_ns - each.begin_ns),
            "name": each.name,
            "cat": each.category,
            **({"args": dict(each.facts)} if each.facts else {}),
        }


def micros(ns: int) -> float:
    """Return microseconds, to the nanosecond."""
    return round(ns / 1e3, 3)


def draw_speedscope(trace: Trace) -> str:
    """Return the whole file of speedscope: one profile a thread, opened and closed frames in order."""
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
    """Return one thread, each slice opened and closed once, the innermost closed first.

    Times count from its first slice, and what was not sampled is a gap.
    """
    start_ns = min((each.begin_ns for each in slices), default=0)
    events: list[Event] = []
    open_: list[tuple[int, int]] = []
    # After the last slice, all that is still open is closed.
    for each in (*slices, None):
        while open_ and (each is None or open_[-1][1] <= each.begin_ns):
            frame, end_ns = open_.pop()
            events.append({"type": "C", "frame": frame, "at": end_ns - start_ns})
        if each is not None:
            frame = frames.setdefault(each.name, len(frames))
            events.append({"type": "O", "frame": frame, "at": each.begin_ns - start_ns})
            open_.append((frame, each.end_ns))
    return {
        "type": "evented",
        "name": name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": events[-1]["at"] if events else 0,
        "events": events,
    }
