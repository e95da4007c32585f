"""The entry of the command line: its exit code whatever happens, and what it writes to its streams.

1 to 4 can only be what a command returned on purpose, so that a usage error, a crash or a closed pipe
never looks like a verdict.
"""

import errno
import os
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO, cast

from hotloop.core.clock import now_ns
from hotloop.core.errors import ExitCode, HotloopError
from hotloop.core.files import NO_ROOM
from hotloop.core.process import lifeline
from hotloop.core.progress import ENDINGS, Progress, not_in_children, silent

if TYPE_CHECKING:
    from rich.console import RenderableType

HOME, STANDARD = Path(__file__).parents[1], Path(os.__file__).parent

# Libraries that Hotloop calls itself: what they raise is not the fault of user code.
LIBRARIES = {"click", "numpy", "rich", "typer"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; nothing is raised."""

    def command() -> int:
        from hotloop.cli.app import run

        return run(sys.argv[1:] if argv is None else argv)

    return exit_code_of(command)


def exit_code_of(command: Callable[[], int]) -> int:
    """Run a command and return its exit code, whatever it raises."""
    with dropping_streams(), hearing_endings():
        try:
            code = command()
            sys.stdout.flush()
        except BaseException as error:  # noqa: BLE001 - here every exception gets its code
            code = explain(error)
    return int(code)


@contextmanager
def hearing_endings() -> Iterator[None]:
    """Interrupt the command on SIGTERM and SIGHUP as on Ctrl-C, so that what it has measured is saved.

    The process of user code is interrupted by its supervisor instead; these signals there are the user's.
    """
    is_main = threading.current_thread() is threading.main_thread()
    heard = [each for each in ENDINGS if signal.getsignal(each) is signal.SIG_DFL]
    if not is_main or lifeline.line is not None:
        heard = []

    def press_ctrl_c(_: int, frame: FrameType | None) -> None:
        # Where Ctrl-C is ignored, as in the background, interrupt all the same.
        handler = signal.getsignal(signal.SIGINT)
        (handler if callable(handler) else signal.default_int_handler)(signal.SIGINT, frame)

    for each in heard:
        signal.signal(each, not_in_children(press_ctrl_c))
    try:
        yield
    finally:
        for each in heard:
            signal.signal(each, signal.SIG_DFL)


def explain(error: BaseException) -> int:
    """Say in one line what went wrong and return its exit code."""
    if isinstance(error, KeyboardInterrupt):
        code, what = ExitCode.INTERRUPTED, "interrupted"
    elif isinstance(error, HotloopError):
        code, what = error.exit_code, str(error)
    elif isinstance(error, OSError) and error.errno in NO_ROOM:
        where = f" for {error.filename}" if error.filename else ""
        code, what = ExitCode.USAGE, f"{error.strerror}{where}: make room and run again"
    elif isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        code, what = ExitCode.USAGE, "a name is longer than the file system takes: give a shorter one"
    elif lifeline.line is not None and isinstance(error, OSError) and error.errno == errno.EBADF:
        code, what = ExitCode.USAGE, "the target closed a file that is ours: it may close what it opened"
    elif is_of_user(error):
        from hotloop.envs.callables import last_words

        code, what = ExitCode.USAGE, f"the target raised: {last_words(error)}{lifeline.at_step()}"
    else:
        code, what = ExitCode.FAULT, f"a fault: {type(error).__name__}: {error}; {keep_traceback(error)}"
    line = "".join(each if each.isprintable() else "?" for each in " ".join(what.split()))
    if lifeline.line is not None:
        lifeline.line.say(failed=line)
    if lifeline.line is None or code != ExitCode.INTERRUPTED:  # only its supervisor knows by what
        print(f"hotloop: {line}", file=sys.stderr)
    return code


def is_of_user(error: BaseException) -> bool:
    """Return whether user code is on the way to where it was raised, in the process that it has.

    That is code in a file that is not of Hotloop, of Python, or of a library that Hotloop calls.
    """
    if lifeline.line is None:
        return False
    for frame in traceback.extract_tb(error.__traceback__):
        file = Path(frame.filename)
        parts = set(file.parts)
        is_standard = STANDARD in file.parents and not {"site-packages", "dist-packages"} & parts
        if file.is_absolute() and not (HOME in file.parents or is_standard or LIBRARIES & parts):
            return True
    return False


def keep_traceback(error: BaseException) -> str:
    """Show the traceback where HOTLOOP_DEBUG=1 asks for it, otherwise save it; return which."""
    lines = "".join(traceback.format_exception(error))
    if os.environ.get("HOTLOOP_DEBUG") == "1":
        print(lines, file=sys.stderr)
        return "its traceback is above"
    try:
        with tempfile.NamedTemporaryFile("w", prefix="hotloop-", suffix=".txt", delete=False) as saved:
            saved.write(lines)
    except OSError:
        return "its traceback could not be saved (HOTLOOP_DEBUG=1 shows it)"
    return f"its traceback is in {saved.name} (HOTLOOP_DEBUG=1 shows it)"


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
