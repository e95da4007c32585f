"""Bench of a program: whole runs, one after another, each timed from its start to its end."""

from dataclasses import dataclass, replace

from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record.record import Record
from hotloop.judge.compare import check_alike
from hotloop.judge.judge import judge
from hotloop.lab.bench import NOTHING, Extras, with_comparisons
from hotloop.lab.measure.loop import NO_LIMIT, Length, Plan, Samples, measure, until_interrupted
from hotloop.lab.programs.launch import Launcher, Program
from hotloop.lab.programs.metrics import Metric
from hotloop.lab.programs.record import ProgramRecorder, ProgramSide
from hotloop.options.bench import PROGRAM_ROUNDS

BOX_NS = 60_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """How often a program is run."""

    count: int = PROGRAM_ROUNDS
    warmup: int = 1  # Runs before the first that counts: they fill the caches of the disk
    # Whether a slow program gets fewer rounds, as many as fit into a minute, and six at least
    boxed: bool = True

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
            return measure_once(ProgramSide(program, launcher, metric), rounds, extras, progress)

        first = replace(once(), label=extras.label)
        return judge(with_comparisons(first, extras.baselines, extras.band, once))


def measure_once(side: ProgramSide, rounds: Rounds, extras: Extras, progress: Progress) -> Record:
    """Run a program round by round, after its warm-up."""
    recorder = ProgramRecorder("bench", side.program)
    for baseline in extras.baselines:
        check_alike(baseline, recorder.setting(side.headline))
    plan = Plan(
        rounds=rounds.count,
        budget_ns=BOX_NS if rounds.boxed else NO_LIMIT,
        patient=True,
        block=1,
        length=Length(1),
    )
    sides, total, warmed = {side.name: side}, rounds.warmup + rounds.count, 0
    samples = Samples(sides)
    with until_interrupted(samples):
        while warmed < rounds.warmup:
            side.run()
            warmed += 1
            progress(warmed, total)
        measure(sides, plan, lambda done, _: progress(warmed + done, total), samples=samples)
    side.keep(samples.count)
    return recorder.record(
        rounds=rounds.count if samples.partial else samples.count,
        warmup=warmed,
        runs=samples.count,
        headline=side.headline,
        values=side.values(),
        findings=side.finding(),
        partial=samples.partial,
        notices=side.launcher.notices(),
    )
