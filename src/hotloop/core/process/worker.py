"""Workers: processes that are told what to do, and answer, in lines of JSON over their pipes."""

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
from typing import Any

from hotloop.core.clock import now_ns
from hotloop.core.interrupt import defer_interrupt
from hotloop.core.process import lifeline
from hotloop.core.process.guard import PR_SET_PDEATHSIG, prctl
from hotloop.core.process.supervisor import POLL_S, STACK_S, STEP_S, Limits, frames

PATIENCE_S = 2.0
"""How long a worker may take to end by itself."""

ANSWER_S = Limits(step_s=STEP_S).first_s
"""What an answer may take where nobody else watches: making a target, or a whole turn."""

STACK = "Current thread"
"""What the stack of a worker that was asked for it begins with."""

LAST_CHARACTERS = 300


class EndedError(Exception):
    """A worker ended where an answer was expected: its status, and the end of what it printed."""

    def __init__(self, status: int, printed: str) -> None:
        super().__init__(status, printed)
        self.status, self.printed = status, printed

    @property
    def how(self) -> str:
        if self.status < 0:
            return f"was ended by {signal.Signals(-self.status).name}"
        return f"ended with exit code {self.status}"

    @property
    def last_words(self) -> str:
        """In one line."""
        return " ".join(self.printed[-LAST_CHARACTERS:].split()) or "nothing"


class HungError(EndedError):
    """A worker had not answered for so long that it was ended; what it printed ends with its stack."""

    @property
    def how(self) -> str:
        return f"stood still for {ANSWER_S:g} s{frames(self.printed.splitlines())} and was ended"

    @property
    def last_words(self) -> str:
        return " ".join(self.printed.partition(STACK)[0][-LAST_CHARACTERS:].split()) or "nothing"


class Worker:
    """A process in a group of its own; what it prints beside its answers is kept for when it ends.

    It ends with the thread that starts it, whatever it is at: whoever is killed leaves none behind.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path | None = None
    ) -> None:
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

    def tell(self, command: Mapping[str, object]) -> None:
        """Pass on what to do without waiting for it; EndedError where nobody is there to do it."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(command).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def answer(self) -> dict[str, Any]:
        """Its next answer; EndedError where it ends instead."""
        assert self.process.stdout is not None
        if (lifeline.line is None or lifeline.endless) and not self._speaks():
            raise self._hung()
        line = self.process.stdout.readline()
        if not line:
            raise self._ended()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self, patience_s: float = PATIENCE_S) -> None:
        """End it by closing its pipes; kill it, and what it started, if that is not enough."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # what nobody reads any more is not missed
                    pipe.close()
        try:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(patience_s)
        finally:
            end_group(self.process)
            self._printed.close()

    def _speaks(self) -> bool:
        """Whether it says something, or ends, in time."""
        assert self.process.stdout is not None
        heard = select.poll()
        heard.register(self.process.stdout, select.POLLIN)
        return bool(heard.poll(ANSWER_S * 1e3))

    def _hung(self) -> HungError:
        """End it, after it was asked for its stack."""
        size, until = self._size(), now_ns() + round(STACK_S * 1e9)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, lifeline.STACK_SIGNAL)
        while self._size() == size and now_ns() < until and self.process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(POLL_S)
        end_group(self.process)
        return HungError(self.process.wait(), self._all_printed())

    def _size(self) -> int:
        return os.fstat(self._printed.fileno()).st_size

    def _ended(self) -> EndedError:
        return EndedError(self.process.wait(), self._all_printed())

    def _all_printed(self) -> str:
        self._printed.seek(0)
        return self._printed.read().decode(errors="replace").strip()


def start(command: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
    """Start a process that leads a group of its own.

    Ctrl-C is put off until the process is known, and then ends it: one that nobody knows would live on.
    """
    with defer_interrupt() as interrupted:
        process = subprocess.Popen(command, start_new_session=True, **how)
    if interrupted:
        end_group(process)
        raise KeyboardInterrupt
    return process


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that leads a group of its own, and whatever it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
