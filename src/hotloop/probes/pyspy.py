"""py-spy: samples of the stack from outside the process, which hardly notices; native code too."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from hotloop.core.errors import InputError
from hotloop.core.machine import install_line
from hotloop.core.record import stacks
from hotloop.core.record.profile import Finding, Table
from hotloop.core.record.stacks import Frame, Stack
from hotloop.core.registry import Obstacle, Probe, ProbeError, Scene, nameless
from hotloop.stats.intervals import share_interval

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


def without_ours(seconds: Mapping[Stack, float]) -> dict[Stack, float]:
    """Return the same without Hotloop's frames at the beginning; its own time alone keeps one of them."""
    found: dict[Stack, float] = {}
    for stack, weight in seconds.items():
        first = next((i for i, frame in enumerate(stack) if is_theirs(frame)), len(stack) - 1)
        found[stack[first:]] = found.get(stack[first:], 0.0) + weight
    return found


def is_theirs(frame: Frame) -> bool:
    """Return whether a frame is Python code that is not Hotloop's."""
    return frame[1].endswith((".py", ">")) and not frame[1].startswith(OURS)


def is_named(frame: Frame, name: str) -> bool:
    """Whether a frame is of a function; newer Pythons tell of it with what it is defined in."""
    return frame[0].rpartition(".")[2] == name


def describe(seconds: Mapping[Stack, float]) -> Finding:
    """The functions by the samples in which they were at work themselves."""
    whole = sum(seconds.values())
    samples = round(whole * RATE)
    hot = [each for each in stacks.functions(seconds) if each.own][:MOST_ROWS]
    rows = tuple(row_of(each, whole, samples) for each in hot)
    return Finding(
        probe="pyspy",
        facts={"samples": samples, "rate_per_s": RATE},
        tables=(Table(title="Functions by samples", columns=COLUMNS, rows=rows),),
        files=(FILE,),
    )


def row_of(each: stacks.Function, whole: float, samples: int) -> tuple[object, ...]:
    """Return the row of one function, each share with the interval that so many samples give it."""
    own, total = each.own / whole, each.total / whole
    return (
        each.place,
        round(own * samples),
        own,
        share_interval(own, samples),
        total,
        share_interval(total, samples),
    )


probe = Probe(
    name="pyspy",
    purpose="samples of the stack from outside, native code too; a flame graph and speedscope",
    why_not=why_not,
    look=look,
)
