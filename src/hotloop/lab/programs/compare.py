"""Compare programs: they run in turns, the first of them twice a round, and each other is held against it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from string import ascii_lowercase

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record.comparison import A, ComparedSide, Comparison, Ratio
from hotloop.core.record.record import Record
from hotloop.judge.compare import MOVED, ComparisonInput, conclude
from hotloop.judge.judge import judge
from hotloop.lab.measure.loop import Plan, rounds_of
from hotloop.lab.measure.settle import AGAIN
from hotloop.lab.programs.launch import Launcher, Program, Run
from hotloop.lab.programs.metrics import Metric
from hotloop.lab.programs.record import ProgramRecorder, Taken, describe_path, describe_work, described
from hotloop.stats.intervals import FEWEST
from hotloop.stats.ratio import half_width, outcome, ratio

ORDER = "the sides and A again in shuffled order"

MOST = 8
"""Programs at once."""

WARMUP = 1
"""Runs of each before the first round: they fill the caches of the disk."""

CALM_ROUNDS = 2 * FEWEST
"""Before an interval that is narrow enough ends it."""


class Turns:
    """What the runs took, by side; complete up to the last whole round."""

    def __init__(self, programs: Mapping[str, Program], metric: Metric | None) -> None:
        self.taken = {name: Taken(program, metric) for name, program in programs.items()}

    @property
    def count(self) -> int:
        return min(len(each.runs) for each in self.taken.values())

    def note(self, round_: Mapping[str, Run]) -> None:
        for name, run in round_.items():
            self.taken[name].note(run)

    def ratio(self, one: str, other: str) -> Ratio:
        """How many times as long one took as the other, or by what it printed."""
        return ratio(self.taken[one].times, self.taken[other].times)

    def cpu_ratio(self, other: str) -> Ratio | None:
        times = self.taken[A].cpu_ns, self.taken[other].cpu_ns
        return ratio(*times) if all(map(all, times)) else None

    @property
    def others(self) -> list[str]:
        """The sides that are held against A."""
        return [name for name in self.taken if name not in (A, AGAIN)]


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
    runs: list[Turns] = []
    broken_off = False
    with Launcher() as launcher:
        try:
            measure(
                launcher, {**named, AGAIN: programs[0]}, plan, runs, progress, rounds=rounds, metric=metric
            )
        except KeyboardInterrupt:
            broken_off = True
            launcher.close()
    made = record(named, runs, plan, recorder, partial=broken_off)
    return judge(replace(made, notices=launcher.notices()))


def check(programs: Sequence[Program]) -> None:
    if not 2 <= len(programs) <= MOST:
        raise InputError(
            f"{len(programs)} programs are given: compare takes 2 to {MOST}, each one quoted argument"
        )


def measure(
    launcher: Launcher,
    sides: Mapping[str, Program],
    plan: Plan,
    runs: list[Turns],
    progress: Progress,
    *,
    rounds: int | None,
    metric: Metric | None,
) -> None:
    """One run of rounds, and a second one before anything is called faster or slower."""
    for program in dict.fromkeys(sides.values()):
        for _ in range(WARMUP):
            launcher.run(program)
            progress(0, 1)
    while len(runs) < 2:
        runs.append(Turns(sides, metric))
        take_turns(launcher, sides, plan, runs[-1], progress, rounds=rounds)
        first = runs[0]
        if not any(outcome(first.ratio(A, other), plan.band) in MOVED for other in first.others):
            return


def take_turns(
    launcher: Launcher,
    sides: Mapping[str, Program],
    plan: Plan,
    found: Turns,
    progress: Progress,
    *,
    rounds: int | None,
) -> None:
    """Round after round: as many as were asked for, or until the interval is narrow or the time is over."""
    begin = now_ns()
    turns = {name: partial(launcher.run, program) for name, program in sides.items()}
    for round_ in rounds_of(turns):
        found.note(round_)
        spent = now_ns() - begin
        done = (found.count, rounds) if rounds else (min(spent, plan.budget_ns), plan.budget_ns)
        progress(*done)
        if is_over(found, plan, spent, rounds):
            return


def is_over(found: Turns, plan: Plan, spent_ns: int, rounds: int | None) -> bool:
    if rounds is not None:
        return found.count >= rounds
    if found.count < FEWEST:
        return False
    is_narrow = all(half_width(found.ratio(A, other)) <= plan.settled for other in found.others)
    return spent_ns + spent_ns / found.count > plan.budget_ns or (found.count >= CALM_ROUNDS and is_narrow)


def record(
    programs: Mapping[str, Program],
    runs: Sequence[Turns],
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
        f"{'second.' * number}{side}.{name}": raw
        for number, each in enumerate(runs)
        for side, taken in each.taken.items()
        for name, raw in taken.values().items()
    }
    last = first.taken[others[-1]] if first else Taken(programs[others[-1]])
    return recorder.record(
        rounds=count,
        warmup=WARMUP,
        runs=sum(len(taken.runs) for each in runs for taken in each.taken.values()),
        headline=last.headline,
        values=values,
        order=ORDER,
        comparisons=compared,
        partial=partial,
    )


def weigh(
    programs: Mapping[str, Program], other: str, runs: Sequence[Turns], plan: Plan, recorder: ProgramRecorder
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
