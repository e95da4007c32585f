"""What lies beside a record: its page, the files and pictures of its probes, and its trace."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from hotloop.core.record import stacks
from hotloop.core.record.profile import Finding
from hotloop.core.record.record import Record
from hotloop.core.spans.trace import Trace
from hotloop.report import flames, html, markdown
from hotloop.report.facts import code_line, machine_line
from hotloop.report.kinds import programs, run
from hotloop.report.kinds.findings import MOST_ROWS, RESOURCES
from hotloop.report.kinds.profile import page
from hotloop.report.section import Page
from hotloop.report.traces import draw_speedscope, draw_trace

# What the names of the files end in; the rest is the profile's, or the probe's.
TRACE, SPEEDSCOPE = ".trace.json", ".speedscope.json"

Kept = tuple[str, str | bytes]  # The suffix of a file beside a record, and its content


def folder_of(room: Path, target: str) -> Path:
    """Where the probes of a target write, until it is known under which name their files are kept."""
    return room / re.sub(r"[^\w.-]+", "-", target)


def markdown_page(record: Record) -> str:
    """A profile as the Markdown page that the other files lie beside."""
    return markdown.draw_page(page_of(record)(record, most=MOST_ROWS))


def page_of(record: Record) -> Callable[..., Page]:
    """What makes the page of a record: of a program's runs, or of a loop's."""
    return programs.page if record.work.runs else page


def run_page(record: Record) -> str:
    """A run of somebody's own loop as its Markdown page."""
    return markdown.draw_page(run.run_page(record))


def pictured(target: str, folder: Path, found: Finding) -> Finding:
    """Draw the stacks that a probe saw; its finding then names the pictures too."""
    drawn = []
    for name in found.files:
        if name.endswith(SPEEDSCOPE):
            drawn.append(name.removesuffix(SPEEDSCOPE) + ".svg")
            picture = flames.draw(stacks.read(folder / name), f"{target}, {found.probe}")
            (folder / drawn[-1]).write_text(picture, encoding="utf-8")
    return replace(found, files=(*found.files, *drawn))


def beside(record: Record, folder: Path) -> list[Kept]:
    """All that lies beside the page; a web page only where a probe was asked for."""
    files = [name for found in record.findings for name in found.files]
    kept: list[Kept] = [(".json", record.to_json())]
    if any(found.probe != RESOURCES for found in record.findings):
        kept.append((".html", web_page(record, folder)))
    return kept + [(f".{name}", (folder / name).read_bytes()) for name in files]


def web_page(record: Record, folder: Path) -> str:
    """The profile with what its probes found, their flames among it."""
    pictures = {
        probe: flames.draw(
            stacks.read(folder / name), f"{probe}: click a box to zoom, the top one to go back"
        )
        for probe, name in files_of_stacks(record)
    }
    return html.draw_page(page_of(record)(record, pictures))


def files_of_stacks(record: Record) -> Iterator[tuple[str, str]]:
    """Each probe that kept stacks, and the file they are in."""
    for found in record.findings:
        yield from ((found.probe, name) for name in found.files if name.endswith(SPEEDSCOPE))


def difference_flames(record: Record) -> tuple[Record, list[Kept]]:
    """A record of the gate that names the flames of what changed, and the flames themselves."""
    kept: list[Kept] = []
    found = list(record.findings)
    for number, each in enumerate(found):
        then, now = (each.facts.get(f"stacks_{side}") for side in ("then", "now"))
        if then and now:
            before, after = (stacks.read(Path(file)) for file in (then, now))
            title = f"{record.target.words}: orange grew, blue shrank"
            kept.append((".difference.svg", flames.draw(after, title, before=before)))
            found[number] = replace(each, files=(*each.files, "difference.svg"))
    return replace(record, findings=tuple(found)), kept


def about_trace(record: Record) -> dict[str, Any]:
    """What a reader of a trace must know of the profile it is from."""
    return {
        "target": record.target.name,
        "run_id": record.run_id,
        "machine": machine_line(record.machine),
        "commit": code_line(record.code),
        "policy": record.method.policy,
    }


def trace_files(trace: Trace) -> list[Kept]:
    """A trace in the formats that others open."""
    return [(TRACE, draw_trace(trace)), (SPEEDSCOPE, draw_speedscope(trace))]
