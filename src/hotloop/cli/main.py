"""The entry of the command line: whatever happens behind it becomes an exit code here.

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
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from hotloop.cli.console import dropping_streams
from hotloop.core.errors import ExitCode, HotloopError
from hotloop.core.files import NO_ROOM
from hotloop.core.process import lifeline
from hotloop.core.progress import ENDINGS, not_in_children

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
