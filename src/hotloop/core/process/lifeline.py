"""A process's line to its supervisor: what it does now, what it says, and its record so far.

A process without a supervisor keeps its pulse all the same, so that it runs the same code; what it would
say is not said. `ProcessState` undoes what user code changes or leaves behind in its process.
"""

import faulthandler
import fcntl
import json
import mmap
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from hotloop.core.clock import now_ns
from hotloop.core.errors import HotloopError
from hotloop.core.process.guard import children_of

if TYPE_CHECKING:
    from hotloop.core.record import Record

# Of the environment: the supervisor's process, and its descriptors for messages and for the pulse.
VARIABLE = "HOTLOOP_LIFELINE"

# On which a process writes its Python stacks to the line, whatever it does.
STACK_SIGNAL = signal.SIGRTMAX - 2

PAGE = mmap.PAGESIZE

# Places in the pulse: finished calls of step, what is done now, and copies of the process that came back.
STEPS, DOING, COPIES = 0, 1, 2

MESSAGES_FROM = 200  # Descriptors from here on are ours: who closes the first hundred hits none of them

# So many records so far are made one after another; later ones after so many times as long as one took.
RECORDS_AT_FIRST, RECORD_SHARE = 30, 50

PROGRESS_NS = 100_000_000


class Activity(IntEnum):
    """What a process is in the middle of."""

    STARTING = 0
    OURS = 1  # Hotloop's own work; no timeout applies
    MAKE = 2
    RESET = 3
    STEP = 4
    CLOSE = 5
    TURN = 6  # A user's program is awaited that says nothing before a whole turn is over


def set_apart(descriptor: int) -> int:
    """A copy of a descriptor beyond those that others use; halfway up, where few are allowed."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = limit != resource.RLIM_INFINITY and limit <= 2 * MESSAGES_FROM
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, limit // 2 if few else MESSAGES_FROM)


MakeRecord = Callable[[], "Record | None"]  # Makes a record of what there is so far; None if that is nothing


class SupervisorLine:
    """Messages to the supervisor, each a line of JSON."""

    def __init__(self, descriptor: int, path: str, told: str) -> None:
        self.told = told
        """What the environment said of it."""
        self._owner = os.getpid()
        self._path = path
        """Where the other end's own descriptor can be opened again."""
        self._use(descriptor)
        self._inode = os.fstat(self._descriptor).st_ino
        self._pending: MakeRecord | None = None
        self._record_due_ns = self._progress_due_ns = self._records = 0

    def _use(self, descriptor: int) -> None:
        self._descriptor = set_apart(descriptor)
        faulthandler.enable(self._descriptor)
        faulthandler.register(STACK_SIGNAL, self._descriptor)

    def say(self, **message: object) -> None:
        self.end_copy()
        self._mend()
        rest = memoryview(json.dumps(message).encode() + b"\n")
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def end_copy(self) -> None:
        """End this process if user code forked it and came back here."""
        if os.getpid() != self._owner:
            leave()

    def _mend(self) -> None:
        """Open the line again if user code closed it, or took its number for a file of its own."""
        try:
            if os.fstat(self._descriptor).st_ino == self._inode:
                return
        except OSError:
            pass
        opened = os.open(self._path, os.O_WRONLY)
        self._use(opened)
        os.close(opened)

    def move(self, label: str, done: int, total: int) -> None:
        """Say how far it is, now and then."""
        now = now_ns()
        if now >= self._progress_due_ns or done >= total:
            self._progress_due_ns = now + PROGRESS_NS
            self.say(progress=[label, done, total])

    def offer(self, make: MakeRecord) -> None:
        self._pending = make
        if self._records < RECORDS_AT_FIRST or now_ns() >= self._record_due_ns:
            self.flush()

    def flush(self) -> None:
        """Send the record so far, if there is one that was not sent."""
        make, self._pending = self._pending, None
        if make is None:
            return
        begin = now_ns()
        try:
            record = make()
        except HotloopError:  # of which the record itself will tell, if it comes to that
            return
        if record is None:
            return
        self.say(record=record.to_json())
        self._records += 1
        end = now_ns()
        self._record_due_ns = end + RECORD_SHARE * (end - begin)

    def settle(self) -> None:
        """Nothing is left to save: the record is in its maker's hands."""
        self._pending = None
        self.say(settled=True)


# What is done now, at `STEPS` and `DOING`; shared with the supervisor where there is one.
pulse = memoryview(mmap.mmap(-1, PAGE)).cast("Q")

_first_pulse = pulse[:]  # The pulse of the process that this one is a fork of, if it is one

line: SupervisorLine | None = None  # To the supervisor; None if there is none

endless = False  # Whether the supervisor never ends what stands still: this process sees to its own workers

# Where a supervised process began; user code may have gone elsewhere since.
folder: Path | None = None

# What user code said when it was closed and raised, for the record.
unclosed: list[str] = []


def attach() -> SupervisorLine:
    """Take up the line that the environment names; whatever this process starts has none by itself."""
    global line, folder  # noqa: PLW0603 - a process has one
    folder = Path.cwd()
    told = os.environ.pop(VARIABLE)
    supervisor, messages, beats = map(int, told.split(":"))
    use_page(mmap.mmap(beats, PAGE))
    line = SupervisorLine(messages, f"/proc/{supervisor}/fd/{messages}", told)
    pulse[DOING] = Activity.OURS
    os.close(beats)
    os.close(messages)
    return line


def here() -> Path:
    """Return the folder of the command; user code may have gone elsewhere, and removed where it went."""
    if folder is not None:
        return folder
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.environ.get("PWD", "/"))


def anchored(path: Path) -> Path:
    """Return a path of the command's, wherever user code has gone in this process meanwhile."""
    return here() / path


def shared() -> dict[str, str]:
    """What another process of ours is to be told of the line, so that its pulse is felt too."""
    return {} if line is None else {VARIABLE: line.told}


def join() -> None:
    """Share the pulse of the process that started this one, if it is supervised, and its stacks."""
    told = os.environ.pop(VARIABLE, None)
    if told is None:
        return
    supervisor, messages, beats = told.split(":")
    opened = os.open(f"/proc/{supervisor}/fd/{beats}", os.O_RDWR)
    use_page(mmap.mmap(opened, PAGE))
    os.close(opened)
    stacks = os.open(f"/proc/{supervisor}/fd/{messages}", os.O_WRONLY)
    faulthandler.enable(stacks)
    faulthandler.register(STACK_SIGNAL, stacks)


def use_page(page: mmap.mmap) -> None:
    """Keep the pulse of this process on a page."""
    global pulse, _first_pulse  # noqa: PLW0603 - a process has one
    pulse = memoryview(page).cast("Q")
    _first_pulse = pulse[:]


_is_own_fork = False  # Whether Hotloop forks this process itself


@contextmanager
def own_fork() -> Iterator[None]:
    """Let a process that Hotloop forks meanwhile step on with the envs of before."""
    global _is_own_fork  # noqa: PLW0603 - a process has one
    _is_own_fork = True
    try:
        yield
    finally:
        _is_own_fork = False


def give_up_pulse() -> None:
    """Release the pulse in a process that user code forked: an env of before cannot be stepped on there."""
    global pulse, _is_own_fork  # noqa: PLW0603 - a process has one
    if _is_own_fork:
        _is_own_fork = False  # what user code forks in there is not ours
        return
    pulse.release()
    pulse = memoryview(mmap.mmap(-1, PAGE)).cast("Q")


os.register_at_fork(after_in_child=give_up_pulse)


def beat(page: memoryview, steps: int) -> None:
    """Note a finished step; end the process if user code forked it in that step and came back."""
    try:
        page[STEPS] = steps
    except ValueError:  # released by the fork
        leave()


def end_copy(page: memoryview | None = None) -> None:
    """End a copy of the process that is measured, before it does the work a second time."""
    if line is not None:
        line.end_copy()
    if page is not None:
        try:
            page[STEPS] += 0
        except ValueError:  # released by the fork
            leave()


def leave() -> NoReturn:
    """Count this process among the copies that came back, and end it without a word."""
    _first_pulse[COPIES] += 1
    os._exit(1)


def offer(make: MakeRecord) -> None:
    """Keep what makes a record of what there is so far: it is all that a crash leaves."""
    if line is not None:
        line.offer(make)


@contextmanager
def doing(what: Activity, then: Activity | None = None) -> Iterator[None]:
    """Say what is done meanwhile, and after it what was said before, or `then`; where it raises, it stays."""
    before = pulse[DOING]
    pulse[DOING] = what
    yield
    pulse[DOING] = before if then is None else then


def at_step() -> str:
    """Return what user code is in the middle of, for the end of a line; empty if nothing is asked of it."""
    words = where(pulse[DOING], pulse[STEPS])
    return f", {words}" if words else ""


def where(what: int, steps: int) -> str:
    if what == Activity.STEP:
        return f"in step {steps + 1}"
    if what == Activity.TURN:
        return f"in a turn after {steps:,} steps"
    return (
        f"in {Activity(what).name.lower()}" if what in (Activity.MAKE, Activity.RESET, Activity.CLOSE) else ""
    )


STREAMS = {0: "stdin", 1: "stdout", 2: "stderr"}

# Children that Python starts by itself, and which end with it.
OF_PYTHON = (b"multiprocessing.resource_tracker", b"multiprocessing.forkserver")

OURS = "HOTLOOP_"  # What the names of variables begin with that we change ourselves

MOST_NAMED = 3


class ProcessState:
    """A process as it was before user code came into it."""

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
        try:
            has_moved = Path.cwd() != self._folder
        except OSError:  # it was removed
            has_moved = True
        if has_moved:
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
