"""The one door of the command line: whatever happens behind it becomes an exit code here.

1 to 4 can only be what a command returned on purpose, so that a usage error, a crash or a closed pipe
never looks like a verdict.
"""

import errno
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence

from hotloop.cli.streams import dropping_streams
from hotloop.core.errors import ExitCode, HotloopError

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; nothing is raised."""
    with dropping_streams():
        try:
            from hotloop.cli.app import run

            code = run(sys.argv[1:] if argv is None else argv)
            sys.stdout.flush()
        except BaseException as error:  # noqa: BLE001 - here every exception gets its code
            code = explain(error)
    return int(code)


def explain(error: BaseException) -> int:
    """Say in one line what went wrong and return its exit code."""
    if isinstance(error, KeyboardInterrupt):
        code, what = ExitCode.INTERRUPTED, "interrupted"
    elif isinstance(error, HotloopError):
        code, what = error.exit_code, str(error)
    elif isinstance(error, OSError) and error.errno in NO_ROOM:
        where = f" for {error.filename}" if error.filename else ""
        code, what = ExitCode.FAULT, f"{error.strerror}{where}: make room and run again"
    else:
        code, what = ExitCode.FAULT, f"a fault: {type(error).__name__}: {error}; {keep_traceback(error)}"
    print("hotloop: " + " ".join(what.split()), file=sys.stderr)
    return code


def keep_traceback(error: BaseException) -> str:
    """Show the traceback where HOTLOOP_DEBUG=1 asks for it, else save it; says which."""
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
