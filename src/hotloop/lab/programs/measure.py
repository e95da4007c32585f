"""Programs as sides of the measuring loop: bench, comparison, ladder and soak of whole runs."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from string import ascii_lowercase
from typing import Any

from hotloop.core.clock import now_ns, utc_now
from hotloop.core.errors import InputError
from hotloop.core.machine import belongs, code, machine, project
from hotloop.core.progress import Progress, silent
from hotloop.core.record import CPU_SHARE, ENV_STEPS_PER_S, RUNS_PER_S, Method, Record, new_record
from hotloop.core.record.comparison import A, ComparedSide, Comparison, Ratio
from hotloop.core.record.experiments import OPEN_FILES, PRINTED, RSS_BYTES, RUNNING
from hotloop.core.record.metadata import CodeInfo, Described, PathRan, Work
from hotloop.core.record.profile import Finding, Table
from hotloop.core.settings import RUNG, RUNG_FILE, hash_of
from hotloop.core.turn_clock import Turn
from hotloop.judge.compare import MOVED, ComparisonInput, RunConditions, check_alike, conclude
from hotloop.judge.judge import judge
from hotloop.lab.measure.loop import NO_LIMIT, Length, Plan, Samples, measure, until_interrupted
from hotloop.lab.measure.settle import AGAIN
from hotloop.lab.measure.sides import Side
from hotloop.lab.programs.launch import (
    Launcher,
    Metric,
    Program,
    ProgramRun,
    Series,
    describe_ending,
    last_line,
    read_series,
    to_number,
)
from hotloop.options.bench import BenchProgramOptions
from hotloop.options.sweeps import SoakProgramOptions
from hotloop.stats.summary import FEWEST, half_width, outcome, ratio, with_metrics

PROGRAM = "program"  # What it was, where others have their implementation
OWN = "its own"  # The policy: what a program does is its own affair

WARMUP = 1  # Runs of each program before the first that counts: they fill the caches of the disk
BOX_NS = 60_000_000_000  # Of a bench whose number of rounds is the default
MOST = 8  # Programs in one comparison
CALM_ROUNDS = 2 * FEWEST  # Before an interval that is narrow enough ends a comparison
SOAK_END_S = 5.0  # For a program to end, once it is asked to

NO_RUNG = (
    "it told nothing of its training: give model.learn the callback hotloop.loops.sb3.RunCallback(run), "
    "in a `with hotloop.run(...) as run:`"
)


class ProgramSide(Side):
    """Whole runs of a program, each of them one env-step, and what they took and printed."""

    grain = 1

    def __init__(self, program: Program, launcher: Launcher, metric: Metric | None = None) -> None:
        self.name, self.program, self.launcher, self.metric = program.name, program, launcher, metric
        self.runs: list[ProgramRun] = []
        self.series: list[Series] = []  # What each run printed of the metric

    def turn(self, env_steps: int = 1, run_in: int | None = None) -> Turn:
        """Run the program once; refuses a run that did not print what it is judged by."""
        run = self.run()
        if self.metric:
            self.series.append(read_series(self.metric, run, self.program))
        self.runs.append(run)
        return Turn(run.wall_ns, 1, cpu_ns=run.cpu_ns)

    def run(self) -> ProgramRun:
        return self.launcher.run(self.program)

    def keep(self, rounds: int) -> None:
        """Forget the runs of a round that Ctrl-C has ended."""
        del self.runs[rounds:], self.series[rounds:]

    def counters(self) -> Mapping[str, int]:
        return {"env_steps": len(self.runs)}

    @property
    def headline(self) -> str:
        return self.metric.headline if self.metric else RUNS_PER_S

    @property
    def times(self) -> list[float]:
        """What is compared, less being better, one value a run."""
        if self.metric is None:
            return [float(run.wall_ns) for run in self.runs]
        return [1 / speed for speed in self.metric.speeds([median(each.kept) for each in self.series])]

    @property
    def cpu_ns(self) -> list[float]:
        return [float(run.cpu_ns) for run in self.runs]

    def values(self) -> dict[str, list[float]]:
        """Return the raw values of a record."""
        named = {
            RUNS_PER_S: [1e9 / run.wall_ns for run in self.runs],
            "wall_ns": [float(run.wall_ns) for run in self.runs],
            "cpu_ns": self.cpu_ns,
            CPU_SHARE: [run.cpu_ns / run.wall_ns for run in self.runs],
            "rss_peak_bytes": [float(run.rss_peak_bytes) for run in self.runs],
        }
        if self.metric and self.series:
            kept = [series.kept for series in self.series]
            # Of one run alone, each time that it was printed.
            printed = [*kept[0]] if len(kept) == 1 else [median(values) for values in kept]
            named[self.metric.name] = printed
            named[self.metric.headline] = self.metric.speeds(printed)
        return named

    def findings(self) -> tuple[Finding, ...]:
        """Return every value that was printed, and how many of them were warm-up."""
        if self.metric is None:
            return ()
        rows = tuple((number, each.cut, [*each.values]) for number, each in enumerate(self.series, 1))
        table = Table(title=self.metric.name, columns=("round", "cut", "values"), rows=rows)
        return (Finding(probe="metric", tables=(table,)),)


def described(program: Program) -> Described:
    """Return what a record says of a program."""
    return Described(
        name=program.name,
        world=None,
        impl=PROGRAM,
        device="cpu",
        params={},
        workload_hash=hash_of(program.name),
        variant={},
    )


def describe_path(runs: int) -> PathRan:
    """Return the path of runs: every one that is counted ended by itself and well."""
    ran = {PROGRAM: 1.0} if runs else {}
    return PathRan(requested=PROGRAM, ran=ran, counters={"runs": runs, "exit_status": 0})


class ProgramRecorder:
    """Takes down machine and code before the first run; the project is of the first file that is named."""

    def __init__(self, kind: str, program: Program) -> None:
        self._kind, self._program, self._now = kind, program, utc_now()
        self.machine, self.code, home = machine(), code(None), Path.cwd()
        for word in program.words:
            with suppress(OSError):  # a word that is a whole script is longer than a path may be
                file = Path(word).resolve()
                if file.is_file() and belongs(file):
                    home = file.parent
                    break
        self.code["project"] = project(home)

    def record(
        self,
        *,
        rounds: int,
        warmup: int,
        runs: int,
        headline: str,
        values: Mapping[str, Sequence[float]],
        order: str = "single",
        **more: Any,
    ) -> Record:
        """Return the record of the rounds there were; `more` are fields of the record itself."""
        method = Method(
            rounds=rounds,
            iterations=1,
            warmup=warmup,
            threads=1,
            order=order,
            clock="perf_counter_ns; CPU and memory by wait4",
            policy=OWN,
            headline=headline,
        )
        return with_metrics(
            new_record(
                self._kind,
                now=self._now,
                code=self.code,
                target=described(self._program),
                name=self._program.name,
                machine=self.machine,
                method=method,
                work=Work(runs=runs),
                path=describe_path(runs),
                values=values,
                **more,
            )
        )


def bench(
    program: Program,
    options: BenchProgramOptions,
    progress: Progress = silent,
    *,
    metric: Metric | None = None,
    baselines: Sequence[Record] = (),
) -> Record:
    """Measure a program; Ctrl-C leaves a record of the rounds there were.

    By default a slow program gets fewer rounds: as many as fit into a minute, and six at least.
    """
    from hotloop.lab.bench import with_comparisons

    with Launcher() as launcher:

        def once() -> Record:
            return bench_once(ProgramSide(program, launcher, metric), options, progress, baselines=baselines)

        first = replace(once(), label=options.phase)
        return judge(with_comparisons(first, baselines, options.band_share, once))


def bench_once(
    side: ProgramSide, options: BenchProgramOptions, progress: Progress, *, baselines: Sequence[Record] = ()
) -> Record:
    """Run a program round by round, after its warm-up."""
    rounds, warmup = options.count, WARMUP if options.warmup is None else options.warmup
    recorder = ProgramRecorder("bench", side.program)
    conditions = RunConditions(
        machine=recorder.machine,
        target=described(side.program),
        kind="bench",
        policy=OWN,
        headline=side.headline,
    )
    for baseline in baselines:
        check_alike(baseline, conditions)
    boxed = options.rounds is None and not options.thorough
    budget_ns = BOX_NS if boxed else NO_LIMIT
    plan = Plan(rounds=rounds, budget_ns=budget_ns, patient=True, block=1, length=Length(1))
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
        findings=side.findings(),
        partial=samples.partial,
        notices=side.launcher.notices(),
    )


class ProgramSamples(Samples):
    """Samples of programs, compared by what the runs took or printed."""

    def __init__(self, sides: Mapping[str, ProgramSide]) -> None:
        super().__init__(sides)
        self.sides = sides

    def ratio(self, one: str, other: str) -> Ratio:
        """Return how many times as long one took as the other, or by what it printed."""
        return ratio(self.sides[one].times, self.sides[other].times)

    def cpu_ratio(self, other: str) -> Ratio | None:
        """Return the ratio of CPU times of A and another; None if a run used none."""
        times = self.sides[A].cpu_ns, self.sides[other].cpu_ns
        return ratio(*times) if all(map(all, times)) else None

    def has_moved(self, band: float) -> bool:
        """Whether any program is faster or slower than A."""
        return any(outcome(self.ratio(A, other), band) in MOVED for other in self.others)

    @property
    def others(self) -> list[str]:
        """Return the sides that are compared with A."""
        return [name for name in self.sides if name not in (A, AGAIN)]


def check_count(programs: Sequence[Program]) -> None:
    """Refuse a comparison of one program, or of too many."""
    if not 2 <= len(programs) <= MOST:
        raise InputError(
            f"{len(programs)} programs are given: compare takes 2 to {MOST}, each one quoted argument"
        )


def compare(
    programs: Sequence[Program],
    plan: Plan,
    progress: Progress = silent,
    *,
    rounds: int | None = None,
    metric: Metric | None = None,
) -> Record:
    """Compare programs with the first, in turns; Ctrl-C leaves a record of the rounds there were.

    They run so many rounds, or until the interval is narrow or the time over.
    """
    check_count(programs)
    recorder = ProgramRecorder("compare", programs[-1])
    named = dict(zip(ascii_lowercase, programs, strict=False))

    def is_narrow(samples: Samples) -> bool:
        assert isinstance(samples, ProgramSamples)
        if samples.count < CALM_ROUNDS:
            return False
        return all(half_width(samples.ratio(A, other)) <= plan.settled for other in samples.others)

    how = replace(plan, patient=True, block=1, length=Length(1))
    how = replace(how, stop=is_narrow) if rounds is None else replace(how, rounds=rounds, budget_ns=NO_LIMIT)
    runs: list[ProgramSamples] = []
    with Launcher() as launcher, until_interrupted() as state:
        for program in dict.fromkeys(programs):
            for _ in range(WARMUP):
                launcher.run(program)
                progress(0, 1)
        # A second run before anything is called faster or slower.
        while not runs or (len(runs) == 1 and runs[0].has_moved(plan.band)):
            sides = {**named, AGAIN: programs[0]}.items()
            runs.append(ProgramSamples({name: ProgramSide(each, launcher, metric) for name, each in sides}))
            measure(runs[-1].sides, how, progress, samples=runs[-1])
    for each in runs:
        for side in each.sides.values():
            side.keep(each.count)
    values = {
        f"{'second.' * number}{letter}.{name}": raw
        for number, each in enumerate(runs)
        for letter, side in each.sides.items()
        for name, raw in side.values().items()
    }
    others = [name for name in named if name != A]
    return judge(
        recorder.record(
            rounds=runs[0].count if runs else 0,
            warmup=WARMUP,
            runs=sum(each.count * len(each.sides) for each in runs),
            headline=runs[0].sides[others[-1]].headline if runs else RUNS_PER_S,
            values=values,
            order="the sides and A again in shuffled order",
            comparisons=tuple(conclude_one(named, other, runs, plan, recorder.code) for other in others),
            partial=state.partial,
            notices=launcher.notices(),
        )
    )


def conclude_one(
    programs: Mapping[str, Program], other: str, runs: Sequence[ProgramSamples], plan: Plan, ran: CodeInfo
) -> Comparison:
    """Return the comparison of one program with A."""
    full = [each for each in runs if each.count >= FEWEST]
    evidence = ComparisonInput(
        band=plan.band,
        ratio=full[0].ratio(A, other) if full else None,
        second=full[1].ratio(A, other) if len(full) > 1 else None,
        others=tuple(each.ratio(AGAIN, other) for each in full),
        noise=full[0].ratio(A, AGAIN) if full else None,
        cpu=full[0].cpu_ratio(other) if full else None,
    )
    count = runs[0].count if runs else 0
    a, b = (
        ComparedSide(
            name=program.name,
            run_id=None,
            target=described(program),
            code=ran,
            work=Work(runs=count),
            path=describe_path(count),
        )
        for program in (programs[A], programs[other])
    )
    return conclude(evidence, a, b, ())


@dataclass(frozen=True, slots=True)
class UpdateTimes:
    """The updates of one run of a rung; the first fills caches and does not count."""

    warmup_steps: int
    steps: int
    ns: int


class RungSide(ProgramSide):
    """Runs of a program as one rung of its ladder.

    The program has the callback `hotloop.loops.sb3.RunCallback`, which makes a run the rung that it is
    asked for: envs alone, rollouts, training, or training with evaluation.
    """

    def __init__(self, program: Program, launcher: Launcher, mode: str) -> None:
        super().__init__(program, launcher)
        self.mode, self.updates = mode, list[UpdateTimes]()

    def run(self) -> ProgramRun:
        """Run the rung once and read what it says of its updates."""
        file = self.launcher.folder / "rung.json"
        file.unlink(missing_ok=True)
        environment = {RUNG: self.mode, RUNG_FILE: str(file), "HOTLOOP_RUN": "off"}
        run = self.launcher.run(self.program, environment)
        updates = json.loads(file.read_text("utf-8")) if file.exists() else []
        if not updates:
            raise InputError(f"{self.program.name} is no ladder: {NO_RUNG}")
        counted = updates[1:] or updates
        before = updates[0][0] if len(updates) > 1 else 0
        steps, ns = (sum(column) for column in zip(*counted, strict=True))
        self.updates.append(UpdateTimes(before, steps, ns))
        return run

    def keep(self, rounds: int) -> None:
        super().keep(rounds)
        del self.updates[rounds:]


def climb(program: Program, modes: Sequence[str], rounds: int, progress: Progress = silent) -> list[Record]:
    """Measure the rungs of a program's training; Ctrl-C leaves records of the whole rounds there were."""
    from hotloop.lab.training.sides import ORDER, POLICIES

    recorder = ProgramRecorder("bench", program)
    with Launcher() as launcher:
        rungs = {mode: RungSide(program, launcher, mode) for mode in modes}
        plan, samples = Plan(rounds=rounds, budget_ns=NO_LIMIT, length=Length(1)), Samples(rungs)
        with until_interrupted(samples):
            measure(rungs, plan, progress, samples=samples)
    for rung in rungs.values():
        rung.keep(samples.count)
    records = list[Record]()
    for mode, rung in rungs.items():
        updates = rung.updates
        speeds = [each.steps * 1e9 / each.ns for each in updates]
        steps = sum(each.steps for each in updates)
        made = recorder.record(
            rounds=len(speeds),
            warmup=max((each.warmup_steps for each in updates), default=0),
            runs=len(rung.runs),
            headline=ENV_STEPS_PER_S,
            values={**rung.values(), ENV_STEPS_PER_S: speeds},
            order=ORDER,
            partial=samples.partial,
            label=mode,
        )
        made = replace(
            made,
            run_id=f"{made.run_id}-{mode}",
            method=replace(made.method, policy=POLICIES[mode], iterations=steps // max(len(updates), 1)),
            work=replace(made.work, env_steps=steps),
        )
        records.append(judge(with_metrics(made)))
    return records


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
    from hotloop.lab.soak import KIND, SoakState, look_s

    recorder, found = ProgramRecorder(KIND, program), SoakState()
    answer: dict[str, Any] | None = None
    with Launcher(settle_s=options.seconds, end_s=SOAK_END_S) as launcher:
        printed = launcher.folder / "printed"
        launcher.start(program, printed, printed)
        with until_interrupted(found), printed.open("rb") as file:
            begin = now_ns()
            while found.seconds < options.seconds:
                answer = launcher.wait(look_s(options.seconds))
                if answer is not None:
                    found.ended = "the program ended"
                    break
                found.seconds = (now_ns() - begin) / 1e9
                text = file.read().decode(errors="replace")
                usage = resource_usage(launcher.pid)
                if metric and (matches := [*metric.pattern.finditer(text)]):
                    last = to_number(metric, matches[-1].group(metric.pattern.groups))
                    usage[f"{PRINTED}{metric.name}"] = metric.speeds([last])[-1]
                found.note(found.seconds, usage)
                progress(round(1_000 * found.seconds), round(1_000 * options.seconds))
        if answer and answer["status"] > 0 and not found.rows:
            words = last_line([printed.read_text(errors="replace")])
            raise InputError(f"{program.name} {describe_ending(answer['status'])}: {words}")
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


def resource_usage(launcher: int) -> dict[str, float]:
    """Return what the program, all of its children and its orphans hold, which are below its launcher."""
    import psutil

    rss = files = threads = 0
    for each in psutil.Process(launcher).children(recursive=True):
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            rss += each.memory_info().rss
            files += each.num_fds()
            threads += each.num_threads()
    return {RSS_BYTES: float(rss), OPEN_FILES: float(files), RUNNING: float(threads)}
