"""What probes leave behind: files beside the record, pictures of their stacks, and one page of it all."""

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotloop.core.registry import probes

if TYPE_CHECKING:
    from hotloop.core.record import Record

STACKS = ".speedscope.json"
"""What the names of files with stacks end in."""

Probes = Annotated[
    list[str] | None,
    typer.Option(
        "--probe",
        metavar="NAME",
        help=f"Look in a further pass: {', '.join(probes())}, or all; may be repeated, or a list with "
        "commas.  [default: phases,resources]",
    ),
]
Pid = Annotated[
    int | None,
    typer.Option(metavar="PID", min=1, help="Instead of a target: a process that runs already (py-spy)."),
]
Seconds = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="How long to look at that process.  [default: 5]")
]
Commit = Annotated[bool, typer.Option("--commit", help="Commit the page and the record with git.")]


def folder_of(room: Path, target: str) -> Path:
    """Where the probes of a target write, until it is known under which name their files are kept."""
    return room / re.sub(r"[^\w.-]+", "-", target)


def pictured(record: "Record", folder: Path) -> "Record":
    """Draw the stacks that probes saw; the record then names the pictures too."""
    from hotloop.probes import stacks
    from hotloop.report import flames

    findings = []
    for found in record.findings:
        drawn = []
        for name in found.files:
            if name.endswith(STACKS):
                drawn.append(name.removesuffix(STACKS) + ".svg")
                title = f"{record.target.name}, {found.probe}"
                (folder / drawn[-1]).write_text(flames.draw(stacks.read(folder / name), title))
        findings.append(replace(found, files=(*found.files, *drawn)))
    return replace(record, findings=tuple(findings))


def beside(record: "Record", folder: Path) -> "list[tuple[str, str | bytes]]":
    """Suffix and content of all that lies beside the page; a web page only where a probe was asked for."""
    files = [name for found in record.findings for name in found.files]
    kept: list[tuple[str, str | bytes]] = [(".json", record.to_json())]
    if any(found.probe != "resources" for found in record.findings):
        kept.append((".html", page(record, folder)))
    return kept + [(f".{name}", (folder / name).read_bytes()) for name in files]


def page(record: "Record", folder: Path) -> str:
    from hotloop.probes import stacks
    from hotloop.report.page import draw_page

    pictures = {
        found.probe: stacks.read(folder / name)
        for found in record.findings
        for name in found.files
        if name.endswith(STACKS)
    }
    return draw_page(record, pictures)
