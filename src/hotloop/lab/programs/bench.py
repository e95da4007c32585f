"""Bench of a program: whole runs, one after another, each timed from its start to its end."""

from dataclasses import dataclass, replace

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record.record import Record
from hotloop.judge.compare import check_alike
from hotloop.judge.judge import judge
from hotloop.lab.bench import NOTHING, Extras, with_comparisons
from hotloop.lab.programs.launch import Launcher, Program
from hotloop.lab.programs.metrics import Metric
from hotloop.lab.programs.record import ProgramRecorder, Taken
from hotloop.stats.intervals import FEWEST

BOX_NS = 60_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """How often a program is run."""

    count: int = 10
    warmup: int = 1
    """Runs before the first that counts: they fill the caches of the disk."""
    boxed: bool = True
    """Whether a slow program gets fewer rounds, as many as fit into a minute, and six at least."""

    def __post_init__(self) -> None:
        for name, least in (("count", 1), ("warmup", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}: expected at least {least}")


def bench(
    program: Program,
    rounds: Rounds,
    progress: Progress = silent,
    *,
    metric: Metric | None = None,
    extras: Extras = NOTHING,
) -> Record:
    """Measure a program; Ctrl-C leaves a record of the rounds there were."""
    with Launcher() as launcher:

        def once() -> Record:
            return measure_once(launcher, Taken(program, metric), rounds, extras, progress)

        return judge(with_comparisons(replace(once(), label=extras.label), extras, once))


def measure_once(
    launcher: Launcher, taken: Taken, rounds: Rounds, extras: Extras, progress: Progress
) -> Record:
    recorder = ProgramRecorder("bench", taken.program)
    for baseline in extras.baselines:
        check_alike(baseline, recorder.setting(taken.headline))
    partial, warmed = True, 0
    try:
        for _ in range(rounds.warmup):
            launcher.run(taken.program)
            warmed += 1
            progress(warmed, rounds.warmup + rounds.count)
        measure(launcher, taken, rounds, progress)
        partial = False
    except KeyboardInterrupt:
        launcher.close()
    return recorder.record(
        rounds=rounds.count if partial else len(taken.runs),
        warmup=warmed,
        runs=len(taken.runs),
        headline=taken.headline,
        values=taken.values(),
        findings=taken.finding(),
        partial=partial,
        notices=launcher.notices(),
    )


def measure(launcher: Launcher, taken: Taken, rounds: Rounds, progress: Progress) -> None:
    """Run it round by round."""
    begin = now_ns()
    while len(taken.runs) < rounds.count:
        taken.note(launcher.run(taken.program))
        done = len(taken.runs)
        progress(rounds.warmup + done, rounds.warmup + rounds.count)
        spent = now_ns() - begin
        if rounds.boxed and done >= FEWEST and spent + spent / done > BOX_NS:
            return
