"""Soak of a program: watched from outside while it runs, with what it prints about itself."""

import os
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Any

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record import OPEN_FILES, PRINTED, RSS_BYTES, RUNNING, RUNS_PER_S, Record
from hotloop.judge.judge import judge
from hotloop.lab.programs.launch import NOT_STARTED, Program, ending, last_line
from hotloop.lab.programs.metrics import Metric, number
from hotloop.lab.programs.record import ProgramRecorder
from hotloop.lab.soak import KIND, Asked, SoFar

PATIENCE_S = 5.0
"""For a program to end, once it is asked to."""


def soak(
    program: Program, asked: Asked, progress: Progress = silent, *, metric: Metric | None = None
) -> Record:
    """Run a program for its time, or to its end; Ctrl-C leaves a record of what was seen."""
    recorder, found = ProgramRecorder(KIND, program), SoFar()
    with tempfile.TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True) as folder:
        printed = Path(folder) / "printed"
        process = start(program, printed)
        try:
            watch(process, printed, asked, found, metric, progress)
            found.partial = False
        except KeyboardInterrupt:
            found.partial = True
        finally:
            end(process)
        if process.returncode > 0 and not found.rows:
            words = last_line([printed.read_text(errors="replace")])
            raise InputError(f"{program.name} {ending(process.returncode)}: {words}")
    return judge(
        recorder.record(
            rounds=len(found.rows),
            warmup=0,
            runs=1,
            headline=RUNS_PER_S,
            values={},
            soak=found.soak(),
            partial=found.partial,
        )
    )


def start(program: Program, printed: Path) -> "subprocess.Popen[bytes]":
    """Start it in a session of its own; what it prints goes to a file."""
    try:
        with printed.open("wb") as file:
            return subprocess.Popen(
                program.words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
            )
    except OSError as error:
        raise InputError(f"{program.name}: {NOT_STARTED}: {error.strerror}") from None


def watch(
    process: "subprocess.Popen[bytes]",
    printed: Path,
    asked: Asked,
    found: SoFar,
    metric: Metric | None,
    progress: Progress,
) -> None:
    """Look again and again until the time is over, or it has ended."""
    import psutil

    begin, whole_s = now_ns(), asked.seconds or 0.0
    with suppress(psutil.NoSuchProcess), printed.open("rb") as file:
        root = psutil.Process(process.pid)
        while found.seconds < whole_s:
            sleep(asked.look_s)
            if process.poll() is not None:
                found.ended = "the program ended"
                return
            found.seconds = (now_ns() - begin) / 1e9
            values = holdings(root)
            values |= said(file.read().decode(errors="replace"), metric)
            found.note(found.seconds, values)
            progress(round(1_000 * found.seconds), round(1_000 * whole_s))


def holdings(root: Any) -> dict[str, float]:
    """What it and all of its children hold."""
    import psutil

    rss = files = threads = 0
    for each in [root, *root.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            rss += each.memory_info().rss
            files += each.num_fds()
            threads += each.num_threads()
    return {RSS_BYTES: float(rss), OPEN_FILES: float(files), RUNNING: float(threads)}


def said(text: str, metric: Metric | None) -> dict[str, float]:
    """The last value that was printed since the last look."""
    if metric is None:
        return {}
    matches = [match.group(metric.pattern.groups) for match in metric.pattern.finditer(text)]
    return {f"{PRINTED}{metric.name}": metric.speeds([number(metric, matches[-1])])[-1]} if matches else {}


def end(process: "subprocess.Popen[bytes]") -> None:
    """Press Ctrl-C, wait a little, then end all of it."""
    for each, wait_s in ((signal.SIGINT, PATIENCE_S), (signal.SIGKILL, PATIENCE_S)):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, each)
        with suppress(subprocess.TimeoutExpired):
            process.wait(wait_s)
