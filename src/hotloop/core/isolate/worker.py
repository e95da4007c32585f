"""Workers: processes that are told what to do, and answer, in lines of JSON over their pipes."""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hotloop.core.interrupt import put_off_interrupt

PATIENCE_S = 2.0
"""How long a worker may take to end by itself."""

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


class Worker:
    """A process in a group of its own; what it prints beside its answers is kept for when it ends."""

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

    def _ended(self) -> EndedError:
        status = self.process.wait()
        self._printed.seek(0)
        return EndedError(status, self._printed.read().decode(errors="replace").strip())


def start(command: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
    """Start a process that leads a group of its own.

    Ctrl-C is put off until the process is known, and then ends it: one that nobody knows would live on.
    """
    with put_off_interrupt() as interrupted:
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
