"""Files of records: those written beside one, with pictures and traces, and shelves of records read back."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from hotloop.core.errors import InputError
from hotloop.core.project import Budget
from hotloop.core.record import (
    ACCEPTED_SUFFIX,
    FRAMES_SUFFIX,
    Accepted,
    Frames,
    Record,
    read,
    read_beside,
    read_frames,
    stacks,
)
from hotloop.core.record.profile import Finding
from hotloop.core.time_tree import MAIN, Slice, Trace
from hotloop.report import html, markdown, shapes
from hotloop.report.kinds import train
from hotloop.report.kinds.profile import page
from hotloop.report.kinds.times import MOST_ROWS, RESOURCES
from hotloop.report.section import code_line, machine_line
from hotloop.stats.summary import with_metrics

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
        "$schema": stacks.SCHEMA,
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


# Names of files that training keeps beside its records.
NO_RECORDS = ("settings.json", "trace.json", "state.json")

CELLS = "/artifacts/sweeps/"  # Where sweeps keep each of their measurements, to go on after a break
DIAGNOSIS = "diagnosis-"  # What the names of diagnoses begin with, which are about records and lie among them
Drawn = TypeVar("Drawn")  # What a shelf is made into: a page, a text, a table


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A record and its file."""

    record: Record
    path: Path | None = None  # None if it was read out of a file of another tool's


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """The records, oldest first, and all that was said beside them."""

    entries: tuple[Entry, ...]
    left_out: tuple[str, ...] = ()  # One line a file that is no record
    replays: tuple[Frames, ...] = ()  # What tapes and bundles look like, if they were drawn
    budgets: tuple[Budget, ...] = ()  # Of the project that the page is about, in the order of its file
    # Run id to why the level since it is the right one.
    accepted: Mapping[str, str] = field(default_factory=dict)

    @property
    def records(self) -> list[Record]:
        return [entry.record for entry in self.entries]


def read_shelf(folders: list[Path]) -> Shelf:
    """Return all records below some folders; what is none is named and left out."""
    entries: list[Entry] = []
    left_out: list[str] = []
    replays: list[Frames] = []
    accepted: dict[str, str] = {}
    for path in record_files(folders):
        try:
            if path.name.endswith(FRAMES_SUFFIX):
                replays.append(read_frames(path))
            elif path.name.endswith(ACCEPTED_SUFFIX):
                note = read_beside(path, Accepted, "accepted change")
                accepted[note.run_id] = note.why
            else:
                entries.append(Entry(record=with_metrics(read(path)), path=path))
        except InputError as error:
            left_out.append(str(error))
    entries.sort(key=lambda entry: entry.record.created)
    return Shelf(entries=tuple(entries), left_out=tuple(left_out), replays=tuple(replays), accepted=accepted)


def draw_shelf(shelf: Shelf, draw: Callable[[Shelf], Drawn]) -> tuple[Drawn, Shelf]:
    """Draw a shelf; return what was drawn, and the shelf without the records that cannot be.

    A file of the right form may still say what cannot be files. It is named, and costs no other record.
    """
    try:
        return draw(shelf), shelf
    except Exception:
        # Why each record cannot be drawn, not even alone; and whether a shelf can be drawn at all.
        faults = [fault_of(replace(shelf, entries=(entry,)), draw) for entry in shelf.entries]
        if not any(faults) or fault_of(replace(shelf, entries=()), draw):
            raise  # it is not the records
    left_out, entries = list(shelf.left_out), list[Entry]()
    for entry, fault in zip(shelf.entries, faults, strict=True):
        if fault:
            left_out.append(f"{entry.path or entry.record.run_id}: cannot be shown: {fault}")
        else:
            entries.append(entry)
    sound = replace(shelf, entries=tuple(entries), left_out=tuple(left_out))
    return draw(sound), sound


def fault_of(shelf: Shelf, draw: Callable[[Shelf], object]) -> str | None:
    """Return in a line why a shelf cannot be drawn; None where it can."""
    try:
        draw(shelf)
    except Exception as error:  # noqa: BLE001 - whatever a record of the right form brings about
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return None


def record_files(folders: list[Path]) -> Iterator[Path]:
    """Yield JSON files that may be records, each once, in a fixed order."""
    found = set[Path]()
    for folder in folders:
        # A sweep's measurements, which its record sums up, are shown only if they are asked for.
        is_of_cells = CELLS in f"{folder.absolute().as_posix()}/"
        paths = folder.rglob("*.json")
        found.update(path for path in paths if is_of_cells or CELLS not in path.absolute().as_posix())
    for path in sorted(found):
        ours = path.name.endswith((SPEEDSCOPE, TRACE)) or path.name.startswith(DIAGNOSIS)
        if not ours and path.name not in NO_RECORDS and path.is_file():
            yield path
