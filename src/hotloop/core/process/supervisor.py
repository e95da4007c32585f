"""The supervisor of a process with user code in it: starts it, reads its messages, sees it hang, and ends it.

    supervisor ── guard.py ── the process, in a session of its own, and whatever it starts

Whichever of them is killed, nothing is left of what is below it. The process's word that it has finished is
a message: a status alone, whatever its number, says that the process was ended by what runs in it.
"""

import json
import mmap
import os
import select
import selectors
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import dropwhile
from pathlib import Path
from typing import Any, Protocol

from hotloop.core.clock import now_ns
from hotloop.core.errors import ExitCode, SetupError
from hotloop.core.process.lifeline import DOING, PAGE, STACK_SIGNAL, STEPS, VARIABLE, Activity, where
from hotloop.core.progress import defer_interrupt, handling

STEP_S = 60.0  # The usual limit of a step

GUARD = Path(__file__).with_name("guard.py")

POLL_S = 0.25  # Between two looks at the pulse of a process that says nothing
PATIENCE_S = 10.0  # For a process that has finished to end by itself
STACK_S = 2.0  # For a process that stands still to write its stack
LAST_BYTES = 4000  # Of what a process printed that are worth keeping

# The file that waits for another process of ours.
WAITS = str(Path(__file__).parents[2] / "envs" / "projects.py")

PIPES = "/multiprocessing/connection.py"  # The file by which it waits

# The folder of our code that steps envs of users.
STEPPED = str(Path(__file__).parents[2] / "envs" / "foreign")

FRAMES = 3  # Of a stack that are worth a place in a line

OUT_OF_MEMORY = "the kernel does that where memory runs out, or somebody ended it"


@dataclass(frozen=True, slots=True, kw_only=True)
class StandstillLimits:
    """How long a process may stand still."""

    step_s: float
    # After an interruption, to finish what it is at and keep what there is; a second one does not wait.
    stop_s: float = PATIENCE_S

    @property
    def first_s(self) -> float:
        """Making, resetting and the first step may compile something; a turn is many steps."""
        return 10 * self.step_s

    def of(self, what: int, steps: int) -> float | None:
        """The limit of what is done now; None for work of our own."""
        if what == Activity.OURS:
            return None
        is_late = what == Activity.CLOSE or (what == Activity.STEP and steps > 0)
        return self.step_s if is_late else self.first_s


class Listener(Protocol):
    """What is told what a process says meanwhile."""

    def said(self, stream: str, text: str) -> None:
        """Something for `out` or `err`, from our own code."""

    def printed(self, text: str) -> None:
        """What user code wrote to its stdout or stderr."""

    def moved(self, label: str, done: int, total: int) -> None: ...


@dataclass(slots=True)
class ExitReport:
    """What became of a process."""

    code: int | None = None  # What it said its exit code is; None where it was ended without a word
    why: str | None = None  # What went wrong, in one line
    record: str | None = None  # The last record so far, where none was settled
    # Lines of Python stacks that it wrote when it crashed, or was asked where it stands.
    stack: list[str] = field(default_factory=list)
    # The code with which it left without a word; None where it was killed, or said its last.
    exited: int | None = None
    hung: bool = False
    interrupted: bool = False


class Watchdog:
    """Sees that nothing moves any more."""

    def __init__(self, limits: StandstillLimits) -> None:
        self._limits = limits
        self._seen = (0, 0)
        self._since_ns = now_ns()
        self._looks = 0
        """Looks at the stack since something moved."""

    def note(self) -> None:
        """Reset the watchdog timer."""
        self._since_ns = now_ns()

    def exceeded_s(self, what: int, steps: int) -> float | None:
        """The limit for which nothing has moved; None where something has since."""
        idle_s, limit_s = self._idle_s(what, steps), self._limits.of(what, steps)
        return limit_s if limit_s is not None and idle_s > limit_s else None

    def is_look_due(self, what: int, steps: int) -> bool:
        """Whether nothing has moved for the limit of a step, or once more for as long after the last look.

        User code can write to the page, and so say that no step is under way.
        """
        idle_s = self._idle_s(what, steps)
        self._looks = min(self._looks, int(idle_s / self._limits.step_s))
        if steps == 0 or idle_s <= (self._looks + 1) * self._limits.step_s:
            return False
        self._looks += 1
        return True

    def _idle_s(self, what: int, steps: int) -> float:
        """Return the seconds for which nothing has moved."""
        now, seen = now_ns(), (what, 0 if what == Activity.OURS else steps)
        if seen != self._seen:
            self._seen, self._since_ns = seen, now
        return (now - self._since_ns) / 1e9


class Supervisor:
    """One process, from its start to its end."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        limits: StandstillLimits,
        listener: Listener,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start the process.

        Args:
            name: What the process is called in messages.
            command: The words after `python`.
            limits: How long the process may stand still.
            listener: What is told of its messages.
            environment: Variables of the process beside those of this one.
        """
        self.name, self._listener, self._limits = name, listener, limits
        self._dog = Watchdog(limits)
        self._stack = ExitStack()
        self._ended = ExitReport()
        self._pid: int | None = None
        self._status: int | None = None
        self._buffers = {"messages": b"", "reply": b""}
        self._printed = b""
        messages, self._messages_in = self._pipe()
        output, output_in = self._pipe()
        reply, reply_in = self._pipe()
        beats = os.memfd_create("hotloop-pulse")
        self._stack.callback(os.close, beats)
        os.ftruncate(beats, PAGE)
        self._pulse = memoryview(mmap.mmap(beats, PAGE)).cast("Q")
        self._more = dict(environment or {})
        self._process = self._start(command, output_in, reply_in, beats)
        os.close(output_in)
        os.close(reply_in)
        self._reads = selectors.DefaultSelector()
        for descriptor, name_ in ((messages, "messages"), (output, "output"), (reply, "reply")):
            os.set_blocking(descriptor, False)
            self._reads.register(descriptor, selectors.EVENT_READ, name_)

    def _pipe(self) -> tuple[int, int]:
        ends = os.pipe()
        for end in ends:
            self._stack.callback(os.closerange, end, end + 1)  # whether or not it is open
        return ends

    def _start(self, command: Sequence[str], output: int, reply: int, beats: int) -> subprocess.Popen[bytes]:
        told = f"{os.getpid()}:{self._messages_in}:{beats}"
        words = [sys.executable, "-I", "-S", str(GUARD), str(reply), sys.executable, *command]
        with defer_interrupt() as interrupted:
            process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=(reply, self._messages_in, beats),
                env={**os.environ, **self._more, VARIABLE: told},
                start_new_session=True,
            )
        if interrupted:
            self._ended.interrupted = True
        return process

    def run(self) -> ExitReport:
        """Watch over the process until it has ended, and everything it started with it."""
        try:
            with handling(lambda *_: self.interrupt()):
                self._listen()
        finally:
            self.close()
        return self._judged()

    def _listen(self) -> None:
        deadline_ns: int | None = None
        while self._status is None:
            self._read(POLL_S)
            is_over = self._ended.code is not None or self._ended.interrupted
            if is_over and deadline_ns is None:
                patience_s = PATIENCE_S if self._ended.code is not None else self._limits.stop_s
                deadline_ns = now_ns() + round(patience_s * 1e9)
            if deadline_ns is not None and now_ns() > deadline_ns:
                return
            if deadline_ns is None and self._hangs():
                return

    def interrupt(self) -> None:
        """Pass an interruption on, from whichever thread; a second one ends the process at once."""
        if self._ended.interrupted or self._pid is None:
            self._end()
        self._ended.interrupted = True
        if self._pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGINT)

    def _hangs(self) -> bool:
        """Whether the process stands still; then its stack is asked for."""
        what, steps = self._pulse[DOING], self._pulse[STEPS]
        if self._pid is None:
            return False
        limit_s = self._dog.exceeded_s(what, steps)
        if limit_s is not None:
            self._ask_stack(self._pid)
            self._ended.stack = self._ended.stack or py_spy(self._pid)
        elif self._dog.is_look_due(what, steps) and self._is_in_step(self._pid, what, steps):
            limit_s, what = self._limits.step_s, Activity.STEP
        else:
            return False
        place = where(what, steps)
        at = (f" {place}" if place else "") + frames(self._ended.stack)
        self._ended.hung = True
        self._ended.why = (
            f"{self.name} stood still for {limit_s:g} s{at}: give --step-timeout where its steps take so long"
        )
        return True

    def _ask_stack(self, pid: int) -> None:
        """Have the processes of a group write their stacks, one by one: their lines would mix."""
        for member in sorted(members_of(pid), key=lambda each: each != pid):
            begun = self._stack_bytes()
            before = heard = begun
            with suppress(ProcessLookupError):
                os.kill(member, STACK_SIGNAL)  # it may wait for another process of ours
            until = now_ns() + round(STACK_S * 1e9)
            while now_ns() < until and (heard == begun or before < heard):
                before = heard  # it is written piece by piece
                self._read(POLL_S)
                heard = self._stack_bytes()

    def _stack_bytes(self) -> int:
        return sum(len(each) + 1 for each in (*self._ended.stack, *self._buffers.values()))

    def _is_in_step(self, pid: int, what: int, steps: int) -> bool:
        """Whether the process's stack shows a step of user code, whatever its page says."""
        before, self._ended.stack = self._ended.stack, []
        self._ask_stack(pid)
        if has_step(self._ended.stack) and (what, steps) == (self._pulse[DOING], self._pulse[STEPS]):
            return True
        self._ended.stack = before
        return False

    def _read(self, timeout_s: float) -> None:
        for key, _ in self._reads.select(timeout_s):
            data = os.read(key.fd, 1 << 16)
            if not data:
                self._reads.unregister(key.fd)
                if key.data == "reply" and self._status is None:
                    self._status = -1  # the guard itself was ended
                continue
            if key.data == "output":
                self._listener.printed(data.decode(errors="replace"))
                self._printed = (self._printed + data)[-LAST_BYTES:]
                continue
            *lines, self._buffers[key.data] = (self._buffers[key.data] + data).split(b"\n")
            for each in lines:
                (self._answered if key.data == "reply" else self._heard)(each)

    def _answered(self, text: bytes) -> None:
        """What the guard says: the number of the process, and its status when it has ended."""
        what, _, number = text.partition(b" ")
        if what == b"pid":
            self._pid = int(number)
            if self._ended.interrupted:
                os.kill(self._pid, signal.SIGINT)
        else:
            self._status = int(number)

    def _heard(self, text: bytes) -> None:
        """A message, or what faulthandler writes between them."""
        self._dog.note()
        try:
            message: Any = json.loads(text)
        except ValueError:
            self._ended.stack.append(text.decode(errors="replace"))
            return
        match message:
            case {"progress": [str() as label, int() as done, int() as total]}:
                self._listener.moved(label, done, total)
            case {"said": str() as text_, "on": str() as stream}:
                self._listener.said(stream, text_)
            case {"record": str() as record}:
                self._ended.record = record
            case {"settled": True}:
                self._ended.record = None
            case {"failed": str() as why}:
                self._ended.why = why
            case {"end": int() as code}:
                self._ended.code = code

    def _end(self) -> None:
        """Have the guard end everything, by closing its line."""
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()

    def close(self) -> None:
        """Kill remaining processes and read pending output."""
        self._end()
        if not ends(self._process.pid, PATIENCE_S):
            self._process.kill()
        self._process.wait()
        if self._pid is not None and (self._status is None or self._status < 0):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
        while self._reads.select(0) and self._reads.get_map():
            self._read(0)
        self._reads.close()
        self._stack.close()

    def _judged(self) -> ExitReport:
        """Say how a process ended that did not say so itself."""
        ended = self._ended
        if ended.code == ExitCode.INTERRUPTED and not ended.interrupted:
            ended.code, ended.why = None, f"{self.name} interrupted itself{self._at()}"
        if ended.code is None and ended.why is None and not ended.interrupted:
            if self._pid is None and self._process.returncode >= 0:
                said = " ".join(self._printed.decode(errors="replace").split())[-300:] or "it said nothing"
                raise SetupError(f"the process for {self.name} could not be started: {said}")
            ended.why = self._death()
        return ended

    def _at(self) -> str:
        at = where(self._pulse[DOING], self._pulse[STEPS])
        return f" {at}" if at else ""

    def _death(self) -> str:
        if self._pid is None:
            return f"{self.name} was ended before it began: somebody killed its guard"
        at = self._at().lstrip() or "before it was asked for anything"
        status = self._status if self._status is not None else 0
        if os.WIFSIGNALED(status) and status > 0:
            number = os.WTERMSIG(status)
            how = f"was ended by {signal.Signals(number).name} {at}{frames(self._ended.stack)}"
            return f"{self.name} {how}{f': {OUT_OF_MEMORY}' if number == signal.SIGKILL else ''}"
        if status < 0:
            return f"{self.name} was ended {at}, and its guard with it: somebody killed both"
        self._ended.exited = os.WEXITSTATUS(status)
        return f"{self.name} ended its own process {at}, with exit code {self._ended.exited}"


def ends(pid: int, patience_s: float) -> bool:
    """Whether a child ends in time; seen at once, where Popen.wait would look every now and then."""
    descriptor, heard = os.pidfd_open(pid), select.poll()
    heard.register(descriptor, select.POLLIN)
    try:
        return bool(heard.poll(patience_s * 1e3))
    finally:
        os.close(descriptor)


def members_of(group: int) -> list[int]:
    """Return the processes of a group."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - names are enough
        with suppress(ProcessLookupError):
            if os.getpgid(int(name)) == group:
                found.append(int(name))
    return found


def frames(stack: Sequence[str]) -> str:
    """The innermost frames of the first stack, in brackets; nothing where there is none.

    One that only waits for another process is not the first.
    """
    stacks: list[list[tuple[str, str]]] = [[]]
    for each in stack:
        words = each.strip()
        if words.startswith("File "):
            _, path, rest = words.split('"', 2)
            stacks[-1].append((path, f"{Path(path).name}{rest.replace(', line ', ':', 1).strip()}"))
        else:
            stacks.append([])
    busy = []
    for frames_of in filter(None, stacks):
        callers = dropwhile(lambda path: path.endswith(PIPES), (path for path, _ in frames_of))
        if next(callers, "") != WAITS:
            busy.append(frames_of)
    return f" ({' < '.join(place for _, place in busy[0][:FRAMES])})" if busy else ""


def has_step(stack: Sequence[str]) -> bool:
    """Whether the thread that wrote a stack is in a step of user code: our innermost frame called it."""
    innermost: str | None = None
    for each in stack:
        words = each.strip()
        if words.startswith(("Current thread", "Thread")):
            innermost = None if words.startswith("Current") else ""
        elif innermost is None and STEPPED in words:
            innermost = words.rpartition(" in ")[2]
            if innermost in ("step", "play"):
                return True
    return False


def py_spy(pid: int) -> list[str]:
    """The stack as py-spy sees it from outside, where there is one and it may look."""
    tool = shutil.which("py-spy")
    if tool is None:
        return []
    words = [tool, "dump", "--pid", str(pid)]
    with suppress(subprocess.SubprocessError, OSError):
        return subprocess.run(
            words, capture_output=True, text=True, timeout=10, check=True
        ).stdout.splitlines()
    return []
