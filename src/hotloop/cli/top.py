"""hotloop top: what a running process does, live."""

import sys
from typing import Annotated

import typer

from hotloop.core.errors import ExitCode, InputError

EXAMPLES = ("hotloop top --pid 12345",)


def top(
    *,
    pid: Annotated[int, typer.Option(metavar="PID", min=1, help="The Python process to look at.")],
) -> int:
    """What a running Python process does, live: its functions by the time they take, like top.

    py-spy looks from outside; the process need not be started in any special way and hardly notices.
    Ctrl-C ends the view, not the process. hotloop profile --pid PID keeps what it sees instead.
    """
    from hotloop.lab.attaching import watch

    if not is_terminal():
        raise InputError("top needs a terminal: hotloop profile --pid PID writes files instead")
    watch(pid)
    return ExitCode.FINE


def is_terminal() -> bool:
    """Whether there is somebody to look."""
    return sys.stdin.isatty() and sys.stdout.isatty()
