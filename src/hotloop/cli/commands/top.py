"""hotloop top: what a running process does, live."""

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from hotloop.cli.console import emit
from hotloop.cli.flags import Json
from hotloop.core.errors import ExitCode, InputError

EXAMPLES = (
    "hotloop top 12345",
    "hotloop top --pid 12345",
    "hotloop top --pid 12345 --json",
)

SECONDS = 1
"""That a look for --json takes."""


def top(
    process: Annotated[
        int | None,
        typer.Argument(metavar="PID", min=1, help="The Python process to look at.", show_default=False),
    ] = None,
    *,
    pid: Annotated[int | None, typer.Option(metavar="PID", min=1, help="The same, as a flag.")] = None,
    json: Json = False,
) -> int:
    """Show live what a running Python process does.

    Its functions by the time they take, like top. py-spy looks from outside; the process needs no special
    start and hardly notices. Ctrl-C ends the view, not the process. hotloop profile --pid PID saves what it
    sees instead; --json prints one second of it.
    """
    from hotloop.lab.profile import attach as attaching

    named = process or pid
    if named is None:
        raise InputError("top needs the number of a process: hotloop top PID")
    if pid not in (None, named):
        raise InputError(f"two processes are named, {named} and --pid {pid}: leave one out")
    if json:
        with tempfile.TemporaryDirectory(prefix="hotloop-") as made:
            emit(attaching.attach(named, Path(made), SECONDS).to_json())
        return ExitCode.FINE
    if not is_terminal():
        raise InputError("top needs a terminal: hotloop profile --pid PID writes files instead")
    attaching.watch(named)
    return ExitCode.FINE


def is_terminal() -> bool:
    """Whether there is somebody to look."""
    return sys.stdin.isatty() and sys.stdout.isatty()
