"""Soak of a program: watched from outside while it runs, with what it prints about itself."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record import RUNS_PER_S, Record
from hotloop.core.record.experiments import OPEN_FILES, PRINTED, RSS_BYTES, RUNNING
from hotloop.judge.judge import judge
from hotloop.lab.measure.loop import until_interrupted
from hotloop.lab.programs.launch import Launcher, Program, ending, last_line
from hotloop.lab.programs.metrics import Metric, number
from hotloop.lab.programs.record import ProgramRecorder
from hotloop.lab.soak import KIND, SoFar, look_s
from hotloop.options.soak import SoakProgramOptions

END_S = 5.0  # For a program to end, once it is asked to


def soak(
    program: Program,
    options: SoakProgramOptions,
    progress: Progress = silent,
    *,
    metric: Metric | None = None,
) -> Record:
    """Run a program for its time, or to its end; Ctrl-C leaves a record of what was seen.

    What it leaves behind is watched as a part of it for as long as it uses CPU.
    """
    recorder, found, answer = ProgramRecorder(KIND, program), SoFar(), None
    with Launcher(settle_s=options.seconds, end_s=END_S) as launcher:
        printed = launcher.folder / "printed"
        launcher.start(program, printed, printed)
        with until_interrupted(found):
            answer = watch(launcher, printed, options, found, metric, progress)
        if answer and answer["status"] > 0 and not found.rows:
            words = last_line([printed.read_text(errors="replace")])
            raise InputError(f"{program.name} {ending(answer['status'])}: {words}")
    if answer:
        launcher.note_orphans(program, answer)
    return judge(
        recorder.record(
            rounds=len(found.rows),
            warmup=0,
            runs=1,
            headline=RUNS_PER_S,
            values={},
            soak=found.soak(),
            partial=found.partial,
            notices=launcher.notices(),
        )
    )


def watch(
    launcher: Launcher,
    printed: Path,
    options: SoakProgramOptions,
    found: SoFar,
    metric: Metric | None,
    progress: Progress,
) -> dict[str, Any] | None:
    """Look again and again until the time is over, or it has ended; return how it ended then."""
    begin, whole_s = now_ns(), options.seconds
    with printed.open("rb") as file:
        while found.seconds < whole_s:
            answer = launcher.wait(look_s(options.seconds))
            if answer is not None:
                found.ended = "the program ended"
                return answer
            found.seconds = (now_ns() - begin) / 1e9
            values = holdings(launcher.pid)
            values |= said(file.read().decode(errors="replace"), metric)
            found.note(found.seconds, values)
            progress(round(1_000 * found.seconds), round(1_000 * whole_s))
    return None


def holdings(launcher: int) -> dict[str, float]:
    """Return what the program, all of its children and its orphans hold, which are below its launcher."""
    import psutil

    rss = files = threads = 0
    for each in psutil.Process(launcher).children(recursive=True):
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
