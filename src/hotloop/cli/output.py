"""What a command says: results on stdout, everything else on stderr."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import RenderableType

PIPE_WIDTH = 120
"""Columns of what is drawn for a reader that is not a terminal."""


def show(view: "RenderableType") -> None:
    """Draw a result."""
    emit(drawn(view, sys.stdout))


def remark(view: "RenderableType") -> None:
    """Draw something about the run that is not its result."""
    sys.stderr.write(drawn(view, sys.stderr))


def drawn(view: "RenderableType", stream: TextIO) -> str:
    """The text of a drawing, in the width and colours its stream can show."""
    from rich.console import Console

    console = Console(
        file=stream, width=None if stream.isatty() else PIPE_WIDTH, markup=False, emoji=False, highlight=False
    )
    with console.capture() as captured:
        console.print(view)
    return captured.get()


@contextmanager
def stdout_kept_clean() -> Iterator[None]:
    """What somebody's environment prints goes to stderr: stdout is for results."""
    with redirect_stdout(sys.stderr):
        yield


def emit(text: str) -> None:
    """Write to stdout at once."""
    sys.stdout.write(text)
    sys.stdout.flush()
