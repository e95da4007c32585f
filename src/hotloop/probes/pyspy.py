"""py-spy: samples of the stack from outside the process, which hardly notices; native code too."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from hotloop.core.errors import InputError
from hotloop.core.probe import Obstacle, Probe, ProbeError, Scene, nameless
from hotloop.core.record import Finding, Table, stacks
from hotloop.core.record.stacks import Frame, Stack, place

RATE = 200
"""Samples a second."""

MOST_ROWS = 25

FILE = "pyspy.speedscope.json"

DENIED = ("permission denied", "operation not permitted", "os error 1)", "os error 13)")

GONE = ("no such process", "failed to get process executable name", "no such file or directory")

NO_PYTHON = "failed to find python version"

REMEDY = (
    "run as root, allow it with `sysctl kernel.yama.ptrace_scope=0`, or give the container "
    "`--cap-add SYS_PTRACE`"
)

COLUMNS = ("function", "own_samples", "own_share", "total_share")


def find() -> str | None:
    """The program: beside this Python, or wherever programs are."""
    beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return shutil.which("py-spy", path=beside)


def why_not() -> Obstacle | None:
    if find() is not None:
        return None
    return Obstacle(why="py-spy is not installed", remedy="pip install 'hotloop[profile]'")


def look(scene: Scene) -> Finding:
    """Let py-spy start a program that plays the same, and keep the samples of the play."""
    if not scene.program:
        raise nameless()
    path = scene.folder / FILE
    record(path, ["--native", "--", sys.executable, *scene.program])
    seconds = inside(stacks.read(path), scene.marker)
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


def attach(pid: int, folder: Path, seconds: int) -> Finding:
    """Look at a process that is running already."""
    path = folder / FILE
    record(path, ["--native", "--duration", str(seconds), "--pid", str(pid)])
    found = stacks.read(path)
    if not found:
        raise ProbeError(
            f"process {pid} did nothing for {seconds} s",
            "attach while it works, or look longer with --seconds",
        )
    return by_total(found)


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
    """Refuse a process that is not there, or is nobody's to look at."""
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
        depth = next((i for i, frame in enumerate(stack) if is_named(frame, marker)), None)
        if depth is not None:
            found[stack[depth:]] = found.get(stack[depth:], 0.0) + weight
    return found


def is_named(frame: Frame, name: str) -> bool:
    """Whether a frame is of a function; newer Pythons tell of it with what it is defined in."""
    return frame[0].rpartition(".")[2] == name


def describe(seconds: Mapping[Stack, float]) -> Finding:
    """The functions by the samples in which they were at work themselves."""
    own: dict[str, float] = {}
    total: dict[str, float] = {}
    for stack, weight in seconds.items():
        names = [function_of(frame) for frame in stack]
        own[names[-1]] = own.get(names[-1], 0.0) + weight
        for name in set(names):
            total[name] = total.get(name, 0.0) + weight
    whole = sum(seconds.values())
    rows = tuple(
        (name, round(own[name] * RATE), own[name] / whole, total[name] / whole)
        for name in sorted(own, key=lambda name: -own[name])[:MOST_ROWS]
    )
    return Finding(
        probe="pyspy",
        facts={"samples": round(whole * RATE), "rate_per_s": RATE},
        tables=(Table(title="Functions by samples", columns=COLUMNS, rows=rows),),
        files=(FILE,),
    )


def by_total(seconds: Mapping[Stack, float]) -> Finding:
    """The functions of a running process by all the time they take, each at its hottest line.

    Nobody knows where its work begins, so that the way in stands first, and what it leads to below.
    """
    whole = sum(seconds.values())
    found = sorted(stacks.functions(seconds), key=lambda each: (-each.total, -each.own))[:MOST_ROWS]
    rows = tuple((each.place, round(each.own * RATE), each.own / whole, each.total / whole) for each in found)
    table = Table(title="Functions by total time", columns=COLUMNS, rows=rows)
    return replace(describe(seconds), tables=(table,))


def function_of(frame: Frame) -> str:
    """A frame without its line, which is where it was at that moment."""
    name, file, _ = frame
    return place((name, file, 0)).removesuffix(":0)") + (")" if file and file != "~" else "")


probe = Probe(
    name="pyspy",
    purpose="samples of the stack from outside, native code too; a flame graph and speedscope",
    why_not=why_not,
    look=look,
)
