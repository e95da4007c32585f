"""What lies beside a record: its page, the files and pictures of its probes, and its trace."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from hotloop.core.record import Record, stacks
from hotloop.core.spans.trace import Trace
from hotloop.report import html, markdown
from hotloop.report.pictures import flames
from hotloop.report.sections.facts import code_line, machine_line
from hotloop.report.sections.findings import MOST_ROWS, RESOURCES
from hotloop.report.sections.profile import page
from hotloop.report.traces import draw_speedscope, draw_trace

TRACE, SPEEDSCOPE = ".trace.json", ".speedscope.json"
"""What the names of the files end in; the rest is the profile's, or the probe's."""

Kept = tuple[str, str | bytes]
"""The suffix of a file beside a record, and its content."""


def folder_of(room: Path, target: str) -> Path:
    """Where the probes of a target write, until it is known under which name their files are kept."""
    return room / re.sub(r"[^\w.-]+", "-", target)


def markdown_page(record: Record) -> str:
    """A profile as the Markdown page that the other files lie beside."""
    return markdown.draw_page(page(record, most=MOST_ROWS))


def pictured(record: Record, folder: Path) -> Record:
    """Draw the stacks that probes saw; the record then names the pictures too."""
    drawn: dict[str, list[str]] = {}
    for probe, name in files_of_stacks(record):
        picture = name.removesuffix(SPEEDSCOPE) + ".svg"
        title = f"{record.target.name}, {probe}"
        (folder / picture).write_text(flames.draw(stacks.read(folder / name), title), encoding="utf-8")
        drawn.setdefault(probe, []).append(picture)
    findings = (
        replace(found, files=(*found.files, *drawn.get(found.probe, ()))) for found in record.findings
    )
    return replace(record, findings=tuple(findings))


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
    return html.draw_page(page(record, pictures))


def files_of_stacks(record: Record) -> Iterator[tuple[str, str]]:
    """Each probe that kept stacks, and the file they are in."""
    for found in record.findings:
        yield from ((found.probe, name) for name in found.files if name.endswith(SPEEDSCOPE))


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
