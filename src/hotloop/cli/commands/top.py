"""hotloop top: what a running process does, live."""

import sys
import tempfile
from pathlib import Path

from hotloop.cli.console import emit
from hotloop.core.errors import ExitCode, InputError
from hotloop.options.misc import TopOptions

SECONDS = 1  # That a look for --json takes


def top(options: TopOptions) -> int:
    """Watch a process until Ctrl-C, or look at it for a second."""
    from hotloop.lab.profile import probes

    pid = options.pid
    named = options.process or pid
    assert named is not None
    if pid not in (None, named):
        raise InputError(f"two processes are named, {named} and --pid {pid}: leave one out")
    if options.json:
        with tempfile.TemporaryDirectory(prefix="hotloop-") as made:
            emit(probes.attach(named, Path(made), SECONDS).to_json())
        return ExitCode.FINE
    if not is_terminal():
        raise InputError("top needs a terminal: hotloop profile --pid PID writes files instead")
    probes.watch_process(named)
    return ExitCode.FINE


def is_terminal() -> bool:
    """Whether there is somebody to look."""
    return sys.stdin.isatty() and sys.stdout.isatty()
