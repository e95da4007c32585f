"""How profile is asked for probes, and for what they leave behind."""

from typing import Annotated

import typer

from hotloop.core.registry import probes

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
