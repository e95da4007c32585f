"""Launching programs: one run at a time, by a small process of its own, which ends them where this one is."""

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from hotloop.core.errors import InputError, SetupError

LAUNCHER = Path(__file__).parents[1] / "workers" / "launcher.py"

PATIENCE_S = 5
"""For the launcher to end, once it is asked to; its program has some of it."""

LAST_CHARACTERS = 300

ENDED = "what runs the programs has ended: run it again"

NOT_STARTED = "it cannot be started"


@dataclass(frozen=True, slots=True)
class Program:
    """A command: words, no shell."""

    words: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, what: str = "a program") -> "Program":
        """The words of one quoted argument."""
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise InputError(f"{what} cannot be read: {error} in {text!r}") from None
        if not words:
            raise InputError(f"{what} is empty: give a command, such as 'python train.py'")
        return cls(words)

    @property
    def name(self) -> str:
        """As it would be typed."""
        return shlex.join(self.words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a program, from its start to its end."""

    wall_ns: int
    cpu_ns: int
    """Of it and of all that it waited for, user and system."""
    rss_peak_bytes: int
    """Of the largest of them."""
    printed: str
    """On stdout, then on stderr."""


class Launcher:
    """Runs programs until it is closed; what they print is kept from the screen."""

    def __init__(self) -> None:
        self._room = tempfile.TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(LAUNCHER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(
        self,
        program: Program,
        environment: Mapping[str, str] | None = None,
        begun: Callable[[int], None] = lambda _: None,
    ) -> Run:
        """Run a program to its end; InputError with its own last words where it fails.

        `begun` is told its pid.
        """
        out, err = (str(Path(self._room.name) / name) for name in ("out", "err"))
        order = {"words": program.words, "out": out, "err": err, "environment": environment}
        told = self._ask(order)
        if "pid" in told:
            begun(told["pid"])
            told = self._hear()
        if "error" in told:
            raise InputError(f"{program.name}: {NOT_STARTED}: {told['error']}")
        printed = [Path(file).read_text("utf-8", errors="replace") for file in (out, err)]
        if told["status"]:
            raise InputError(f"{program.name} {ending(told['status'])}: {last_line(reversed(printed))}")
        del told["status"]
        return Run(**told, printed="\n".join(printed))

    def _ask(self, order: Mapping[str, object]) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise SetupError(ENDED) from None
        return self._hear()

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer:
            raise SetupError(ENDED)
        found: dict[str, Any] = json.loads(answer)
        return found

    def close(self) -> None:
        """End the launcher, and the program that it runs."""
        self._process.terminate()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                stream.close()  # type: ignore[union-attr]
        self._room.cleanup()


def ending(status: int) -> str:
    """How a program ended that failed."""
    if status > 0:
        return f"ended with exit code {status}"
    return f"was ended by {signal.Signals(-status).name}"


def last_line(printed: Sequence[str] | Any) -> str:
    """The last line that says anything, of the first text that has one."""
    for text in printed:
        lines = [line.strip() for line in text.replace("\r", "\n").splitlines() if line.strip()]
        if lines:
            return str(lines[-1][-LAST_CHARACTERS:])
    return "it printed nothing"
