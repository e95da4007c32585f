"""Samples of a Python process by py-spy from outside, which may look between any two instructions.

A timer's signal is handled between two bytecodes only, so that a sampler inside the process overstates
functions that are called often and do little.
"""

import ast
import ctypes
import os
import select
import signal
import subprocess
from collections import Counter
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Self

from hotloop.core.clock import now_ns
from hotloop.core.process.worker import start
from hotloop.core.record import stacks
from hotloop.core.record.stacks import ANONYMOUS, Stack
from hotloop.core.registry import ProbeError
from hotloop.core.sampler import short_name
from hotloop.probes import pyspy

RATE = 499  # Samples a second; a prime, so that no loop of the program keeps in step with it
BEGIN_S = 10.0  # How long py-spy may take to find the interpreter
END_S = 20.0  # How long it may take to write its file

BEGUN = b"Sampling process"

# The sampler inside the process, whose own work is no sample of the program.
SAMPLER = str(Path(__file__).parents[1] / "core" / "sampler.py")

PROCESS = "process "  # What the frame is called that py-spy puts before the stacks of each process

ANONYMOUS_NODES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")

PR_SET_PTRACER = 0x59616D61


class OutsideSampler:
    """Samples a process for as long as it is entered; ProbeError if py-spy may not look."""

    def __init__(self, path: Path, pid: int, *, subprocesses: bool = False, idle: bool = True) -> None:
        self._path, self._pid = path, pid
        self._subprocesses, self._idle = subprocesses, idle
        self._said = b""
        self.counts: Counter[Stack] = Counter()
        """Samples by stack, those that wait among them if `idle`; there once it has been left."""

    def __enter__(self) -> Self:
        obstacle = pyspy.why_not()
        if obstacle is not None:
            raise ProbeError(obstacle.why, obstacle.remedy)
        if self._pid == os.getpid():
            allow_tracing()
        words = [str(pyspy.find()), "record", "--full-filenames", "--format", "speedscope"]
        words += ["--rate", str(RATE), "--output", str(self._path), "--pid", str(self._pid)]
        words += [*(["--idle"] if self._idle else ()), *(["--subprocesses"] if self._subprocesses else ())]
        self._process = start(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | {"RUST_BACKTRACE": "0"},
        )
        try:
            self._wait_for_first()
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._kill()
            return
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)
        try:
            said, _ = self._process.communicate(timeout=END_S)
        except BaseException as late:
            self._kill()
            if isinstance(late, subprocess.TimeoutExpired):
                raise ProbeError("py-spy did not end", "run it by hand to see more") from None
            raise
        if not self._path.exists():
            raise pyspy.failure((self._said + said).decode(errors="replace"))
        self.counts = read_counts(self._path, only_main=self._subprocesses)

    def wait(self, seconds: float) -> None:
        """Let it sample for so long, or until the process ends."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def _wait_for_first(self) -> None:
        """Return when it samples; ProbeError with its reason if it ends or is silent instead."""
        assert self._process.stdout is not None
        until, descriptor = now_ns() + round(BEGIN_S * 1e9), self._process.stdout.fileno()
        while BEGUN not in self._said:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, (until - now_ns()) / 1e9))
            data = os.read(descriptor, 4096) if ready else b""
            if not data:
                raise pyspy.failure(self._said.decode(errors="replace"))
            self._said += data

    def _kill(self) -> None:
        """End it at once; the kernel lets go of the process that it looked at."""
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.communicate()


def allow_tracing() -> None:
    """Let a child look at this process if the machine allows that to parents only."""
    with suppress(OSError, ValueError):
        if YAMA.read_text("ascii").strip() == "1":
            ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)


def read_counts(path: Path, *, only_main: bool) -> Counter[Stack]:
    """Return the samples by stack, with functions named as inside the process.

    A sample that met the sampler inside the process at work is left out, and so are side threads of a
    program, which mostly wait.
    """
    counts: Counter[Stack] = Counter()
    for stack, seconds in stacks.read(path).items():
        named = name_frames(stack)
        if named and not (only_main and is_side_thread(named)) and not is_sampling(named):
            counts[named] += round(seconds * RATE)
    return counts


def name_frames(stack: Stack) -> Stack:
    """Return a stack with functions named as inside the process, those without a name by their first line."""
    return tuple(
        (short_name(name), file, first_line(file, line) if name.endswith(ANONYMOUS) else line)
        for name, file, line in stack
        if file or not name.startswith(PROCESS)
    )


def first_line(file: str, line: int) -> int:
    """Return where the innermost comprehension or lambda around a line begins; the line if there is none."""
    around = [span for span in anonymous_spans(file) if span[0] <= line <= span[1]]
    return max(around, key=lambda span: (span[0], -span[1]))[0] if around else line


@lru_cache
def anonymous_spans(file: str) -> tuple[tuple[int, int], ...]:
    """Return the first and last lines of a file's comprehensions and lambdas; none if it is unreadable."""
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, ValueError, SyntaxError):
        return ()
    found = (node for node in ast.walk(tree) if isinstance(node, ANONYMOUS_NODES))
    return tuple((node.lineno, node.end_lineno or node.lineno) for node in found)


def is_side_thread(stack: Stack) -> bool:
    """Return whether a stack begins where the threading module starts a thread."""
    name, file, _ = stack[0]
    return name.endswith("_bootstrap") and file.endswith("threading.py")


def is_sampling(stack: Stack) -> bool:
    """Return whether the sampler inside the process is at work in a stack."""
    return any(file == SAMPLER for _, file, _ in stack)
