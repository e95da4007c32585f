"""Start processes, and give commands to workers in lines of JSON over their pipes."""

import ctypes  # noqa: F401 - for prctl: a child that was just forked must not import
import json
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

from hotloop.core.clock import now_ns
from hotloop.core.errors import ExitCode, HotloopError, InputError, SetupError
from hotloop.core.process import lifeline
from hotloop.core.process.guard import PR_SET_PDEATHSIG, prctl
from hotloop.core.process.supervisor import POLL_S, STACK_S, STEP_S, StandstillLimits, frames
from hotloop.core.progress import defer_interrupt

PATIENCE_S = 2.0  # How long a worker may take to end by itself

# How long an answer may take without a supervisor: making a target, or a whole turn.
ANSWER_S = StandstillLimits(step_s=STEP_S).first_s

STACK = "Current thread"  # How the stack begins that a worker writes when it is asked for it

LAST_CHARACTERS = 300


class EndedError(InputError):
    """A worker ended instead of answering."""

    def __init__(self, name: str, status: int, printed: str, *, hung: bool = False) -> None:
        """Say it in one line, with the end of what the worker printed."""
        self.status, self.printed = status, printed
        how = f"ended with exit code {status}"
        if hung:
            how = f"stood still for {ANSWER_S:g} s{frames(printed.splitlines())} and was ended"
        elif status < 0:
            how = f"was ended by {signal.Signals(-status).name}"
        text = printed.partition(STACK)[0] if hung else printed
        self.last_words = " ".join(text[-LAST_CHARACTERS:].split()) or "nothing"
        super().__init__(f"{name}: the program {how}; it said: {self.last_words}")


class Worker:
    """A process in a group of its own that answers commands; what it prints is kept for when it ends.

    It ends with the thread that starts it, with all that it started. serve.py is its half of the pipes.
    """

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], folder: Path | None = None
    ) -> None:
        """Start the process; `name` is what messages call that which it works on."""
        self.name = name
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self.process = start(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._printed,
            preexec_fn=partial(prctl, PR_SET_PDEATHSIG, signal.SIGKILL),
        )

    def ask(self, **command: object) -> dict[str, Any]:
        """Return the answer to a command; raise as `tell` and `answer` do."""
        self.tell(command)
        return self.answer()

    def tell(self, command: Mapping[str, object]) -> None:
        """Send a command without waiting for its answer; EndedError if the worker has ended."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(command).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def answer(self) -> dict[str, Any]:
        """Return the next answer; EndedError if the worker ends instead, or its own error if it could not."""
        assert self.process.stdout is not None
        if lifeline.line is None or lifeline.endless:
            poll = select.poll()
            poll.register(self.process.stdout, select.POLLIN)
            if not poll.poll(ANSWER_S * 1e3):
                raise self._hung()
        line = self.process.stdout.readline()
        if not line:
            raise self._ended()
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            kind = SetupError if answer.get("code") == ExitCode.FAULT else InputError
            raise kind(f"{self.name}: {answer['error']}" if self.name else answer["error"])
        return answer

    def close(self, patience_s: float = PATIENCE_S) -> None:
        """End it by closing its pipes; kill it, and what it started, if that is not enough."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # a command that was never read
                    pipe.close()
        try:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(patience_s)
        finally:
            end_group(self.process)
            self._printed.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _hung(self) -> HotloopError:
        """End it after asking for its stack."""
        size, until = self._size(), now_ns() + round(STACK_S * 1e9)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, lifeline.STACK_SIGNAL)
        while self._size() == size and now_ns() < until and self.process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(POLL_S)
        end_group(self.process)
        return self._ended(hung=True)

    def _size(self) -> int:
        return os.fstat(self._printed.fileno()).st_size

    def _ended(self, *, hung: bool = False) -> HotloopError:
        status = self.process.wait()
        self._printed.seek(0)
        printed = self._printed.read().decode(errors="replace").strip()
        return self.explain(EndedError(self.name, status, printed, hung=hung))

    def explain(self, error: EndedError) -> HotloopError:
        """Return the error to raise when the worker has ended."""
        return error


def start(command: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
    """Start a process that leads a group of its own.

    Ctrl-C waits until the process is known, and then ends it; otherwise it would live on.
    """
    with defer_interrupt() as interrupted:
        process = subprocess.Popen(command, start_new_session=True, **how)
    if interrupted:
        end_group(process)
        raise KeyboardInterrupt
    return process


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that leads a group of its own, and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
