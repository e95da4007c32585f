"""What somebody's code may change or leave behind in its process beside its own objects: found and undone."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from hotloop.core.process.guard import children_of

STREAMS = {0: "stdin", 1: "stdout", 2: "stderr"}

# Children that Python starts by itself, and which end with it.
OF_PYTHON = (b"multiprocessing.resource_tracker", b"multiprocessing.forkserver")

OURS = "HOTLOOP_"  # What the names of variables begin with that we change ourselves

MOST_NAMED = 3


class ProcessState:
    """A process as it was before somebody's code came into it."""

    def __init__(self) -> None:
        self._folder = Path.cwd()
        self._umask = umask()
        self._path = list(sys.path)
        self._variables = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        self._handlers = handlers()
        self._threads = frozenset(threading.enumerate())
        self._children = frozenset((*children(), *orphans()))

    def settle(self) -> list[str]:
        """Undo what was done to the process and end what was left in it; says each thing in words."""
        return [*self._streams(), *self._settings(), *self._left()]

    def _streams(self) -> Iterator[str]:
        for descriptor, name in STREAMS.items():
            try:
                os.fstat(descriptor)
            except OSError:
                opened = os.open(os.devnull, os.O_RDWR)
                if opened != descriptor:
                    os.dup2(opened, descriptor)
                    os.close(opened)
                yield f"closed {name}"

    def _settings(self) -> Iterator[str]:
        if folder() != self._folder:
            os.chdir(self._folder)
            yield "changed the folder"
        if umask() != self._umask:
            os.umask(self._umask)
            yield "changed the umask"
        missing = [each for each in self._path if each not in sys.path]
        if missing:
            sys.path[:] = [*self._path, *(each for each in sys.path if each not in self._path)]
            yield f"took {len(missing)} folders off sys.path"
        changed = [name for name, value in self._variables.items() if os.environ.get(name) != value]
        os.environ.update(self._variables)
        if changed:
            yield f"changed the variables {some(changed)}"
        others = [each for each, handler in handlers().items() if self._handlers.get(each) != handler]
        for each in others:
            with suppress(TypeError, ValueError):  # a handler that C code had set
                signal.signal(each, self._handlers[each])
        if others:
            yield f"changed the handlers of {some([each.name for each in others])}"

    def _left(self) -> Iterator[str]:
        threads = [each.name for each in threading.enumerate() if each not in self._threads]
        if threads:
            yield f"left threads running ({some(threads)})"
        left = [pid for pid in (*children(), *orphans()) if pid not in self._children]
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if left:
            yield f"left {len(left)} {'process' if len(left) == 1 else 'processes'} running"


def umask() -> int:
    """The umask, which can only be read by setting it."""
    found = os.umask(0o077)
    os.umask(found)
    return found


def folder() -> Path | None:
    """The current folder; None where it was removed."""
    try:
        return Path.cwd()
    except OSError:
        return None


def handlers() -> dict[signal.Signals, Any]:
    return {each: signal.getsignal(each) for each in signal.Signals}


def children() -> list[int]:
    """Processes that this one started and that run, beside those of Python itself."""
    pids = list[int]()
    for listed in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended since it was listed
            pids += map(int, listed.read_text().split())
    return [pid for pid in pids if is_theirs(pid)]


def orphans() -> list[int]:
    """Processes that left the one they were started by, so that the guard above this one has them."""
    return [pid for pid in children_of(os.getppid()) if pid != os.getpid() and is_theirs(pid)]


def is_theirs(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return bool(words) and not any(each in words for each in OF_PYTHON)


def some(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join([*names[:MOST_NAMED], *([f"{more} more"] if more > 0 else [])])
