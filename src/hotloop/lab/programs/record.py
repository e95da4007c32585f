"""From runs of a program to a record: what it is, what it took, and what it printed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from hotloop.core.clock import utc_now
from hotloop.core.machine import belongs, code, machine, project
from hotloop.core.record import CPU_SHARE, RUNS_PER_S, Method, Record, new_record
from hotloop.core.record.metadata import Code, Described, PathRan, Work
from hotloop.core.record.profile import Finding, Table
from hotloop.core.settings import hash_of
from hotloop.core.turn_clock import Turn
from hotloop.judge.compare import RunConditions
from hotloop.lab.measure.sides import Side
from hotloop.lab.programs.launch import Launcher, Program, Run
from hotloop.lab.programs.metrics import Metric, Series, read
from hotloop.stats.summary import with_metrics

PROGRAM = "program"  # What it was, where others have their implementation
OWN = "its own"  # The policy: what a program does is its own affair


class ProgramSide(Side):
    """Whole runs of a program, each of them one env-step, and what they took and printed."""

    grain = 1

    def __init__(self, program: Program, launcher: Launcher, metric: Metric | None = None) -> None:
        self.name, self.program, self.launcher, self.metric = program.name, program, launcher, metric
        self.runs: list[Run] = []
        self.series: list[Series] = []  # What each run printed of the metric

    def turn(self, env_steps: int = 1, run_in: int | None = None) -> Turn:
        """Run the program once; refuses a run that did not print what it is judged by."""
        run = self.run()
        if self.metric:
            self.series.append(read(self.metric, run, self.program))
        self.runs.append(run)
        return Turn(run.wall_ns, 1, cpu_ns=run.cpu_ns)

    def run(self) -> Run:
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
    def printed(self) -> list[float]:
        """The metric of each run; of one run alone, of each time it was printed."""
        kept = [series.kept for series in self.series]
        return [*kept[0]] if len(kept) == 1 else [median(values) for values in kept]

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
        """The raw values of a record."""
        named = {
            RUNS_PER_S: [1e9 / run.wall_ns for run in self.runs],
            "wall_ns": [float(run.wall_ns) for run in self.runs],
            "cpu_ns": self.cpu_ns,
            CPU_SHARE: [run.cpu_ns / run.wall_ns for run in self.runs],
            "rss_peak_bytes": [float(run.rss_peak_bytes) for run in self.runs],
        }
        if self.metric and self.series:
            named[self.metric.name] = self.printed
            named[self.metric.headline] = self.metric.speeds(self.printed)
        return named

    def finding(self) -> tuple[Finding, ...]:
        """Every value that was printed, and how many of them were warm-up."""
        if self.metric is None:
            return ()
        rows = tuple((number, each.cut, [*each.values]) for number, each in enumerate(self.series, 1))
        table = Table(title=self.metric.name, columns=("round", "cut", "values"), rows=rows)
        return (Finding(probe="metric", tables=(table,)),)


def described(program: Program) -> Described:
    """What a record says of a program."""
    return Described(
        name=program.name,
        world=None,
        impl=PROGRAM,
        device="cpu",
        params={},
        workload_hash=hash_of(program.name),
        variant={},
    )


def describe_work(runs: int) -> Work:
    return Work(runs=runs)


def describe_path(runs: int) -> PathRan:
    """Every run that is counted ended by itself and well."""
    ran = {PROGRAM: 1.0} if runs else {}
    return PathRan(requested=PROGRAM, ran=ran, counters={"runs": runs, "exit_status": 0})


def project_code(program: Program) -> Code:
    """Hotloop's code, and the project of the first file that the program names, or of here."""
    ran = code(None)
    ran["project"] = project(home(program))
    return ran


def home(program: Program) -> Path:
    """Return the folder of the first file that a program names and that is in a repository, or this one."""
    files = (Path(word).resolve() for word in program.words if is_file(word))
    return next((file.parent for file in files if belongs(file)), Path.cwd())


def is_file(word: str) -> bool:
    """Return whether a word names a file; one that is a whole script is longer than a path may be."""
    try:
        return Path(word).is_file()
    except OSError:
        return False


class ProgramRecorder:
    """Takes down machine and code before the first run."""

    def __init__(self, kind: str, program: Program) -> None:
        self._kind, self._program, self._now = kind, program, utc_now()
        self.machine, self.code = machine(), project_code(program)

    def setting(self, headline: str) -> RunConditions:
        """What a run has to share with whatever it is compared with."""
        return RunConditions(
            machine=self.machine,
            target=described(self._program),
            kind=self._kind,
            policy=OWN,
            headline=headline,
        )

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
        """The record of the rounds there were; `more` are fields of the record itself."""
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
                work=describe_work(runs),
                path=describe_path(runs),
                values=values,
                **more,
            )
        )
