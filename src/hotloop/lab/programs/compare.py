"""Compare programs: they run in turns, the first of them twice a round, and each other is held against it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from string import ascii_lowercase

from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record import RUNS_PER_S, Record
from hotloop.core.record.comparison import A, ComparedSide, Comparison, Ratio
from hotloop.judge.compare import MOVED, ComparisonInput, conclude
from hotloop.judge.judge import judge
from hotloop.lab.measure.loop import NO_LIMIT, Length, Plan, Samples, measure, until_interrupted
from hotloop.lab.measure.settle import AGAIN
from hotloop.lab.programs.launch import Launcher, Program
from hotloop.lab.programs.metrics import Metric
from hotloop.lab.programs.record import ProgramRecorder, ProgramSide, describe_path, describe_work, described
from hotloop.stats.intervals import FEWEST
from hotloop.stats.ratio import half_width, outcome, ratio

ORDER = "the sides and A again in shuffled order"

MOST = 8  # Programs at once
WARMUP = 1  # Runs of each before the first round: they fill the caches of the disk
CALM_ROUNDS = 2 * FEWEST  # Before an interval that is narrow enough ends it


class ProgramSamples(Samples):
    """Samples of programs, held against each other by what the runs took or printed."""

    def __init__(self, sides: Mapping[str, ProgramSide]) -> None:
        super().__init__(sides)
        self.sides = sides

    def ratio(self, one: str, other: str) -> Ratio:
        """Return how many times as long one took as the other, or by what it printed."""
        return ratio(self.sides[one].times, self.sides[other].times)

    def cpu_ratio(self, other: str) -> Ratio | None:
        times = self.sides[A].cpu_ns, self.sides[other].cpu_ns
        return ratio(*times) if all(map(all, times)) else None

    def outcomes(self, band: float) -> set[str]:
        return {outcome(self.ratio(A, other), band) for other in self.others}

    @property
    def others(self) -> list[str]:
        """Return the sides that are held against A."""
        return [name for name in self.sides if name not in (A, AGAIN)]


def compare(
    programs: Sequence[Program],
    plan: Plan,
    progress: Progress = silent,
    *,
    rounds: int | None = None,
    metric: Metric | None = None,
) -> Record:
    """Compare programs with the first; Ctrl-C leaves a record of the rounds there were."""
    check(programs)
    recorder = ProgramRecorder("compare", programs[-1])
    named = dict(zip(ascii_lowercase, programs, strict=False))
    runs: list[ProgramSamples] = []
    with Launcher() as launcher, until_interrupted() as state:
        for program in dict.fromkeys(programs):
            for _ in range(WARMUP):
                launcher.run(program)
                progress(0, 1)
        how = plan_of(plan, rounds)
        # A second run before anything is called faster or slower.
        while not runs or (len(runs) == 1 and runs[0].outcomes(plan.band) & set(MOVED)):
            sides = {**named, AGAIN: programs[0]}.items()
            runs.append(ProgramSamples({name: ProgramSide(each, launcher, metric) for name, each in sides}))
            measure(runs[-1].sides, how, progress, samples=runs[-1])
    for each in runs:
        for side in each.sides.values():
            side.keep(each.count)
    made = record(named, runs, plan, recorder, partial=state.partial)
    return judge(replace(made, notices=launcher.notices()))


def plan_of(plan: Plan, rounds: int | None) -> Plan:
    """Return the plan for programs: so many rounds, or until the interval is narrow or the time over."""

    def is_narrow(samples: Samples) -> bool:
        assert isinstance(samples, ProgramSamples)
        if samples.count < CALM_ROUNDS:
            return False
        return all(half_width(samples.ratio(A, other)) <= plan.settled for other in samples.others)

    plan = replace(plan, patient=True, block=1, length=Length(1))
    if rounds is not None:
        return replace(plan, rounds=rounds, budget_ns=NO_LIMIT)
    return replace(plan, stop=is_narrow)


def check(programs: Sequence[Program]) -> None:
    if not 2 <= len(programs) <= MOST:
        raise InputError(
            f"{len(programs)} programs are given: compare takes 2 to {MOST}, each one quoted argument"
        )


def record(
    programs: Mapping[str, Program],
    runs: Sequence[ProgramSamples],
    plan: Plan,
    recorder: ProgramRecorder,
    *,
    partial: bool,
) -> Record:
    first = runs[0] if runs else None
    count = first.count if first else 0
    others = [name for name in programs if name != A]
    compared = tuple(weigh(programs, other, runs, plan, recorder) for other in others)
    values = {
        f"{'second.' * number}{letter}.{name}": raw
        for number, each in enumerate(runs)
        for letter, side in each.sides.items()
        for name, raw in side.values().items()
    }
    last = first.sides[others[-1]] if first else None
    return recorder.record(
        rounds=count,
        warmup=WARMUP,
        runs=sum(each.count * len(each.sides) for each in runs),
        headline=last.headline if last else RUNS_PER_S,
        values=values,
        order=ORDER,
        comparisons=compared,
        partial=partial,
    )


def weigh(
    programs: Mapping[str, Program],
    other: str,
    runs: Sequence[ProgramSamples],
    plan: Plan,
    recorder: ProgramRecorder,
) -> Comparison:
    """One side against A: what is known, and what follows from it."""
    whole = [each for each in runs if each.count >= FEWEST]
    evidence = ComparisonInput(
        band=plan.band,
        ratio=whole[0].ratio(A, other) if whole else None,
        second=whole[1].ratio(A, other) if len(whole) > 1 else None,
        others=tuple(each.ratio(AGAIN, other) for each in whole),
        noise=whole[0].ratio(A, AGAIN) if whole else None,
        cpu=whole[0].cpu_ratio(other) if whole else None,
    )
    count = runs[0].count if runs else 0
    a, b = (
        ComparedSide(
            name=program.name,
            run_id=None,
            target=described(program),
            code=recorder.code,
            work=describe_work(count),
            path=describe_path(count),
        )
        for program in (programs[A], programs[other])
    )
    return conclude(evidence, a, b, ())
