"""What a command says: results on stdout, everything else on stderr, a bar for long runs."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from hotloop.core.clock import now_ns
from hotloop.core.process import lifeline
from hotloop.core.progress import Progress, silent

if TYPE_CHECKING:
    from rich.console import RenderableType


PIPE_WIDTH = 120  # Columns of what is drawn for a reader that is not a terminal

PATIENCE_NS = 1_000_000_000

REDRAW_NS = 100_000_000

# What the system says when a pipe has no reader any more, or a terminal was closed.
GONE = (errno.EPIPE, errno.EIO)

# What our screens show instead of characters that a stream cannot encode.
ASCII = str.maketrans(
    {"µ": "u", "²": "2", "…": "...", "→": "->", "≤": "<=", "≥": ">=", "─": "-", "│": "|", "└": "`"}
    | {"▶": ">", "◀": "<"}
    | dict.fromkeys("▁▂▃▏▎▍░", ".")
    | dict.fromkeys("▄▅▆▇█▌▋▊▉▒▓", "#")
)

# What remarks go to in a process for user code, whatever that did to its stderr; None in the first process.
err: TextIO | None = None


def show(view: "RenderableType") -> None:
    """Draw a result."""
    emit(drawn(view, sys.stdout))


def emit(text: str) -> None:
    """Write to stdout at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def remark(view: "RenderableType") -> None:
    """Draw something about the run that is not its result."""
    stream = err or sys.stderr
    stream.write(drawn(view, stream))


def drawn(view: "RenderableType", stream: TextIO) -> str:
    """Return the text of a drawing, in the width and colors its stream can show."""
    from rich.console import Console

    console = Console(
        file=stream, width=None if stream.isatty() else PIPE_WIDTH, markup=False, emoji=False, highlight=False
    )
    with console.capture() as captured:
        console.print(view)
    return captured.get()


@contextmanager
def stdout_kept_clean() -> Iterator[None]:
    """Send what user code prints to stderr, or to its own process's streams: stdout is for results."""
    if lifeline.line is None:
        with redirect_stdout(sys.stderr):
            yield
        return
    assert sys.__stdout__ is not None
    assert sys.__stderr__ is not None
    with redirect_stdout(sys.__stdout__), redirect_stderr(sys.__stderr__):
        yield


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


def approximate_time(seconds: float) -> str:
    """Return a time to wait in seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.1f} h"


class Dropping:
    """A stream that takes a closed pipe as the end of interest, and shows what it cannot encode in ASCII."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with self._dropped_if_gone():
            self._stream.write(encodable(text, getattr(self._stream, "encoding", None)))
        return len(text)

    def flush(self) -> None:
        with self._dropped_if_gone():
            self._stream.flush()

    @contextmanager
    def _dropped_if_gone(self) -> Iterator[None]:
        """Drop what is still written to a reader that is gone, also by the interpreter at its end."""
        try:
            yield
        except OSError as error:
            if error.errno not in GONE:
                raise
            with nowhere() as sink:
                os.dup2(sink.fileno(), self._stream.fileno())

    def writelines(self, lines: Iterator[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def encodable(text: str, encoding: str | None) -> str:
    """Return a text as a stream of this encoding can show it."""
    if text.isascii() or encoding is None:
        return text
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(ASCII).encode(encoding, "replace").decode(encoding)
    return text


def nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


@contextmanager
def dropping_streams() -> Iterator[None]:
    """Make stdout and stderr such streams; a closed one is replaced by one that drops everything."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", Dropping(stream or nowhere())) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
