"""py-spy: samples of the stack from outside the process, between any two instructions; native code too.

A timer's signal is handled between two bytecodes only, so that a sampler inside the process overstates
functions that are called often and do little.
"""

import ast
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Self

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.machine import install_line
from hotloop.core.process.worker import start
from hotloop.core.record import stacks
from hotloop.core.record.profile import Finding, Table
from hotloop.core.record.stacks import ANONYMOUS, Stack
from hotloop.core.registry import Obstacle, Probe, ProbeError, Scene, nameless
from hotloop.core.sampler import short_name
from hotloop.stats.summary import share_interval

RATE = 200  # Samples a second

MOST_ROWS = 25

FILE = "pyspy.speedscope.json"

DENIED = ("permission denied", "operation not permitted", "os error 1)", "os error 13)")

OURS = str(Path(__file__).parents[1])

GONE = ("no such process", "failed to get process executable name", "no such file or directory")

NO_PYTHON = "failed to find python version"

REMEDY = (
    "run as root, allow it with `sysctl kernel.yama.ptrace_scope=0`, or give the container "
    "`--cap-add SYS_PTRACE`"
)

COLUMNS = ("function", "own_samples", "own_share", "own_interval", "total_share", "total_interval")


def find() -> str | None:
    """The program: beside this Python, or wherever programs are."""
    beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return shutil.which("py-spy", path=beside)


def why_not() -> Obstacle | None:
    if find() is not None:
        return None
    return Obstacle(why="py-spy is not installed", remedy=install_line("py-spy"))


def look(scene: Scene) -> Finding:
    """Let py-spy start a program that plays the same, and keep the samples of the play."""
    if not scene.program:
        raise nameless()
    path = scene.folder / FILE
    record(path, ["--native", "--full-filenames", "--", sys.executable, *scene.program])
    seconds = without_ours(inside(stacks.read(path), scene.marker))
    if not seconds:
        raise ProbeError("py-spy saw no step of the play", "give --steps a larger number, or run it again")
    stacks.write(path, "py-spy", seconds)
    return describe(seconds)


def program(words: Sequence[str], folder: Path) -> Finding:
    """Let py-spy start any Python program, and keep all of its samples, those of its children too."""
    path = folder / FILE
    record(path, ["--native", "--subprocesses", "--", *words])
    found = stacks.read(path)
    if not found:
        raise ProbeError("the program was over before py-spy saw it", "profile one that runs longer")
    return describe(found)


def record(path: Path, what: Sequence[str]) -> None:
    """Run `py-spy record`; ProbeError with its reason where it fails."""
    program = find()
    assert program is not None, "why_not was asked before"
    words = [program, "record", "--format", "speedscope", "--rate", str(RATE), "--output", str(path)]
    environment = os.environ | {"RUST_BACKTRACE": "0"}
    with subprocess.Popen(
        [*words, *what],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate()
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode or not path.exists():
        raise failure(said)


def top(pid: int) -> None:
    """Show py-spy's live view until Ctrl-C; what would keep it from starting is found out beforehand."""
    program = find()
    assert program is not None, "why_not was asked before"
    quiet = os.environ | {"RUST_BACKTRACE": "0"}
    tried = subprocess.run(
        [program, "dump", "--pid", str(pid)], capture_output=True, text=True, env=quiet, check=False
    )
    if tried.returncode:
        raise failure(tried.stderr)
    with suppress(KeyboardInterrupt):  # the way out
        subprocess.run([program, "top", "--pid", str(pid)], env=quiet, check=False)


def failure(said: str) -> ProbeError:
    """What py-spy's last words mean."""
    words = said.lower()
    if any(word in words for word in DENIED):
        return ProbeError("py-spy may not read the memory of another process here", REMEDY)
    if any(word in words for word in GONE):
        return ProbeError("the process ended before py-spy could look at it", "give the pid of one that runs")
    if NO_PYTHON in words:
        return ProbeError(
            "the process runs no Python", "give the pid of Python itself, not of a shell around it"
        )
    reason = " ".join(said.split())[-200:] or "nothing"
    return ProbeError(f"py-spy failed; it said: {reason}", "run it by hand to see more")


def check_pid(pid: int) -> None:
    """Refuse a process that is not there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        raise InputError(f"there is no process {pid}: give the pid of one that runs") from None
    except PermissionError:
        return  # it is there; whether it may be looked at is for py-spy to say
    except OverflowError:
        raise InputError(f"{pid} is no pid: give the pid of a process that runs") from None


def inside(seconds: Mapping[Stack, float], marker: str) -> dict[Stack, float]:
    """What ran below the function of this name, without its callers."""
    found: dict[Stack, float] = {}
    for stack, weight in seconds.items():
        # Newer Pythons name a function with what it is defined in.
        names = [name.rpartition(".")[2] for name, _, _ in stack]
        depth = names.index(marker) if marker in names else None
        if depth is not None:
            found[stack[depth:]] = found.get(stack[depth:], 0.0) + weight
    return found


def without_ours(seconds: Mapping[Stack, float]) -> dict[Stack, float]:
    """Return the same without Hotloop's frames at the beginning; its own time alone keeps one of them."""
    found: dict[Stack, float] = {}
    for stack, weight in seconds.items():
        files = [file for _, file, _ in stack]
        theirs = (
            i for i, file in enumerate(files) if file.endswith((".py", ">")) and not file.startswith(OURS)
        )
        first = next(theirs, len(stack) - 1)
        found[stack[first:]] = found.get(stack[first:], 0.0) + weight
    return found


def describe(seconds: Mapping[Stack, float]) -> Finding:
    """The functions by the samples in which they were at work themselves."""
    whole = sum(seconds.values())
    samples = round(whole * RATE)
    rows = []
    for each in [each for each in stacks.functions(seconds) if each.own][:MOST_ROWS]:
        own, total = each.own / whole, each.total / whole
        own_around, total_around = share_interval(own, samples), share_interval(total, samples)
        rows.append((each.place, round(own * samples), own, own_around, total, total_around))
    return Finding(
        probe="pyspy",
        facts={"samples": samples, "rate_per_s": RATE},
        tables=(Table(title="Functions by samples", columns=COLUMNS, rows=tuple(rows)),),
        files=(FILE,),
    )


OUTSIDE_RATE = 499  # Samples a second; a prime, so that no loop of the program keeps in step with it
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
        obstacle = why_not()
        if obstacle is not None:
            raise ProbeError(obstacle.why, obstacle.remedy)
        if self._pid == os.getpid():
            allow_tracing()
        words = [str(find()), "record", "--full-filenames", "--format", "speedscope"]
        words += ["--rate", str(OUTSIDE_RATE), "--output", str(self._path), "--pid", str(self._pid)]
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
            raise failure((self._said + said).decode(errors="replace"))
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
                raise failure(self._said.decode(errors="replace"))
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
        if not named:
            continue
        name, file, _ = named[0]
        is_side_thread = name.endswith("_bootstrap") and file.endswith("threading.py")
        is_sampling = any(file == SAMPLER for _, file, _ in named)
        if not (only_main and is_side_thread) and not is_sampling:
            counts[named] += round(seconds * OUTSIDE_RATE)
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


probe = Probe(
    name="pyspy",
    purpose="samples of the stack from outside, native code too; a flame graph and speedscope",
    why_not=why_not,
    look=look,
)
