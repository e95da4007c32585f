"""What a command says: results on stdout, everything else on stderr, a bar for whoever waits."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, TextIO

from hotloop.cli import child
from hotloop.core.clock import now_ns
from hotloop.core.process import lifeline
from hotloop.core.progress import Progress, silent

if TYPE_CHECKING:
    from rich.console import RenderableType


PIPE_WIDTH = 120  # Columns of what is drawn for a reader that is not a terminal

PATIENCE_NS = 1_000_000_000

REDRAW_NS = 100_000_000


def show(view: "RenderableType") -> None:
    """Draw a result."""
    emit(drawn(view, sys.stdout))


def remark(view: "RenderableType") -> None:
    """Draw something about the run that is not its result."""
    stream = child.err or sys.stderr
    stream.write(drawn(view, stream))


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
    with redirect_stdout(sys.stderr) if lifeline.line is None else child.streams_of_theirs():
        yield


def emit(text: str) -> None:
    """Write to stdout at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


@contextmanager
def bar(label: str) -> Iterator[Progress]:
    """Give an experiment a bar to move; without a terminal, something that does nothing.

    It is drawn only when it is moved, which is between rounds: no thread redraws it inside one.
    """
    if lifeline.line is not None:
        yield partial(lifeline.line.move, label)
        return
    if not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn(label), BarColumn(), TextColumn("{task.percentage:3.0f}%"), TimeRemainingColumn())
    shown = Bar(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
    task = shown.add_task(label)
    redraw_at = now_ns() + PATIENCE_NS

    def move(done: int, total: int) -> None:
        nonlocal redraw_at
        shown.update(task, completed=done, total=total)
        if now_ns() >= redraw_at:
            shown.start()
            shown.refresh()
            redraw_at = now_ns() + REDRAW_NS

    try:
        yield move
    finally:
        shown.stop()
