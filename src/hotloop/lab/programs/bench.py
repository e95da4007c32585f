"""Bench of a program: whole runs, one after another, each timed from its start to its end."""

from collections.abc import Sequence
from dataclasses import replace

from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.judge.compare import check_alike
from hotloop.judge.judge import judge
from hotloop.lab.bench import with_comparisons
from hotloop.lab.measure.loop import NO_LIMIT, Length, Plan, Samples, measure, until_interrupted
from hotloop.lab.programs.launch import Launcher, Program
from hotloop.lab.programs.metrics import Metric
from hotloop.lab.programs.record import ProgramRecorder, ProgramSide
from hotloop.options.bench import BenchProgramOptions

BOX_NS = 60_000_000_000


WARMUP = 1  # Runs before the first that counts: they fill the caches of the disk


def bench(
    program: Program,
    options: BenchProgramOptions,
    progress: Progress = silent,
    *,
    metric: Metric | None = None,
    baselines: Sequence[Record] = (),
) -> Record:
    """Measure a program; Ctrl-C leaves a record of the rounds there were.

    A slow program gets fewer rounds if nobody says how many: as many as fit into a minute, and six at least.
    """
    with Launcher() as launcher:

        def once() -> Record:
            return measure_once(
                ProgramSide(program, launcher, metric), options, progress, baselines=baselines
            )

        first = replace(once(), label=options.phase)
        return judge(with_comparisons(first, baselines, options.band_share, once))


def measure_once(
    side: ProgramSide,
    options: BenchProgramOptions,
    progress: Progress,
    *,
    baselines: Sequence[Record] = (),
) -> Record:
    """Run a program round by round, after its warm-up."""
    rounds, warmup = options.count, WARMUP if options.warmup is None else options.warmup
    boxed = options.rounds is None and not options.thorough
    recorder = ProgramRecorder("bench", side.program)
    for baseline in baselines:
        check_alike(baseline, recorder.setting(side.headline))
    plan = Plan(
        rounds=rounds,
        budget_ns=BOX_NS if boxed else NO_LIMIT,
        patient=True,
        block=1,
        length=Length(1),
    )
    sides, total, warmed = {side.name: side}, warmup + rounds, 0
    samples = Samples(sides)
    with until_interrupted(samples):
        while warmed < warmup:
            side.run()
            warmed += 1
            progress(warmed, total)
        measure(sides, plan, lambda done, _: progress(warmed + done, total), samples=samples)
    side.keep(samples.count)
    return recorder.record(
        rounds=rounds if samples.partial else samples.count,
        warmup=warmed,
        runs=samples.count,
        headline=side.headline,
        values=side.values(),
        findings=side.finding(),
        partial=samples.partial,
        notices=side.launcher.notices(),
    )
