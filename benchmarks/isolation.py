"""Measure what being watched over costs somebody's environment: its speed, and its start.

    ./.venv/bin/python benchmarks/isolation.py [--rounds 12] [--seconds 36] [--quick]

The speed: a CartPole in a process that nobody watches over, as `--in-process` leaves it, and one behind a
supervisor, a guard and a lifeline take turns, as in `hotloop compare`, two of each. Two processes of one
program differ by a percent and more, by where their memory came to lie, so every round has new processes,
and the interval is over the rounds. All are as far from who times them: a turn that another process's comes
before finds its caches cold, whoever watches, which is what those in this process are for.

The start: whole commands of one step, isolated and `--in-process`, take turns; what the process adds is the
difference, in CPU time and in wall time. Both find compiled bytecode, as what is installed does.
"""

import argparse
import os
import resource
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import benchmark
from hotloop.core.clock import now_ns
from hotloop.core.process.supervisor import STEP_S, StandstillLimits, Supervisor
from hotloop.core.progress import silent
from hotloop.core.record.comparison import A, B, Ratio
from hotloop.core.settings import Target
from hotloop.envs.projects import Process
from hotloop.lab.compare.compare import CompareSettings, CompareState, run_instances
from hotloop.lab.compare.contenders import RemoteSide, TargetContender
from hotloop.lab.measure.loop import Plan
from hotloop.lab.measure.settle import PairedSamples
from hotloop.lab.measure.sides import Side
from hotloop.stats.summary import ratio, summarise

TARGET = Target("gym:CartPole-v1")

ONE_STEP = ("--rounds", "1", "--iterations", "1", "--warmup", "0")

HOTLOOP = str(Path(sys.executable).with_name("hotloop"))

TWO_EACH = {A: 2, B: 2}

BAND = 0.002
"""So narrow that a comparison goes on for as long as it may."""

WATCH = "--watch"
"""What the supervisor's process is called with, before the address that its process answers at."""

PROGRAM = """
import os, socket, sys
from hotloop.core.process import lifeline
if lifeline.VARIABLE in os.environ:
    lifeline.attach()
from hotloop.envs.projects import serve
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])
serve(line.detach())
"""


class AloneProcess(Process):
    """A process in a session of its own, as a supervised one is, which nobody watches over."""

    start: Sequence[str] = (sys.executable, "-P", "-c", PROGRAM)

    def _started(self) -> tuple[subprocess.Popen[bytes], Connection]:
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as door:
            address = str(Path(folder) / "line")
            door.bind(address)
            door.listen(1)
            process = subprocess.Popen([*self.start, address], start_new_session=True)
            line, _ = door.accept()
        return process, Connection(line.detach())


class WatchedProcess(AloneProcess):
    """One below a guard, below a supervisor in a process of its own, as a command has it."""

    start = (sys.executable, __file__, WATCH)


class Alone(TargetContender):
    """A target whose sides are in processes that nobody watches over."""

    process: type[Process] = AloneProcess

    def side(self, policy: str, *, profile: bool = False) -> Side:
        return RemoteSide(self.name, self.target, policy, profile=profile, process=self.process(self.name))


class Watched(Alone):
    """One whose sides are in processes that somebody watches over."""

    process = WatchedProcess


class Deaf:
    """Who is told what a process says, and does nothing about it."""

    def said(self, stream: str, text: str) -> None: ...

    def printed(self, text: str) -> None: ...

    def moved(self, label: str, done: int, total: int) -> None: ...


def watch(address: str) -> None:
    Supervisor(TARGET.name, ["-P", "-c", PROGRAM, address], StandstillLimits(step_s=STEP_S), Deaf()).run()


def compared(b: type[TargetContender], a: type[TargetContender], seconds: float) -> PairedSamples:
    """Two of each take turns, as many of one as of the other: the mean of two is not as skewed as one."""
    asked = CompareSettings(plan=Plan(band=BAND, budget_ns=round(seconds * 1e9)))
    found = CompareState(unlike=())
    run_instances(a(TARGET), b(TARGET), TWO_EACH, asked, found, silent)
    assert not any(map(found.runs[0].first_divergence, "AB")), "one of them answers otherwise"
    return found.runs[0]


def over_all(found: Sequence[Ratio]) -> Ratio:
    """The median of comparisons of which each is one value, and its interval."""
    return ratio([each.estimate for each in found], [1.0] * len(found))


def speeds(rounds: int, seconds: float) -> dict[str, list[Ratio]]:
    """By the names of both sides, one comparison of new processes a round."""
    turns = {
        "watched": partial(compared, Watched, Alone, seconds / rounds),
        "alone": partial(compared, Alone, TargetContender, seconds / rounds),
    }
    taken = benchmark.in_turns(turns, rounds)
    return {
        "watched / alone": [each.ratio() for each in taken["watched"]],
        "alone / alone": [each.noise() for each in taken["watched"]],
        "alone / here": [each.ratio() for each in taken["alone"]],
        "here / here": [each.noise() for each in taken["alone"]],
    }


def speed_lines(found: Mapping[str, Sequence[Ratio]]) -> list[str]:
    return [
        *(f"{name}:".ljust(17) + benchmark.ratio_text(over_all(each), 3) for name, each in found.items()),
        f"over {len(found['watched / alone'])} times two processes of each kind, all of which answer alike",
    ]


def started(bytecode: str, *words: str) -> tuple[int, int]:
    """The wall time and the CPU time of a whole command, all its processes included."""
    with tempfile.TemporaryDirectory() as folder:
        command = [HOTLOOP, "bench", TARGET.name, *ONE_STEP, *words]
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), now_ns()
        subprocess.run(command, cwd=folder, env=compiled_in(bytecode), check=False, capture_output=True)
        wall_ns, after = now_ns() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall_ns, round(cpu_s * 1e9)


def compiled_in(folder: str) -> dict[str, str]:
    """The environment of a command that finds its modules compiled, from the second on."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**inherited, "PYTHONPYCACHEPREFIX": folder}


def starts(rounds: int) -> dict[str, list[tuple[int, int]]]:
    with tempfile.TemporaryDirectory() as bytecode:
        kinds = {
            "isolated": partial(started, bytecode),
            "in process": partial(started, bytecode, "--in-process"),
        }
        return {name: raw[2:] for name, raw in benchmark.in_turns(kinds, rounds + 2).items()}


def start_rows(values: dict[str, list[tuple[int, int]]]) -> list[list[str]]:
    rows = []
    for at, what in ((0, "wall"), (1, "CPU")):
        isolated, plain = ([each[at] for each in values[kind]] for kind in ("isolated", "in process"))
        more = summarise([one - other for one, other in zip(isolated, plain, strict=True)])
        cells = (f"{summarise(each).median / 1e6:.0f} ms" for each in (plain, isolated))
        rows.append([what, *cells, f"{more.median / 1e6:.0f} ms", f"{more.min / 1e6:.0f} ms"])
    return rows


def main() -> None:
    if sys.argv[1:2] == [WATCH]:
        watch(sys.argv[2])
        return
    parser = benchmark.parser(__doc__, rounds=12)
    parser.add_argument("--seconds", type=float, default=36.0, help="for each half of the speed")
    arguments: argparse.Namespace = parser.parse_args()
    rounds = benchmark.rounds_asked(arguments)
    found = speeds(rounds, 1.0 if arguments.quick else arguments.seconds)
    values = starts(rounds)
    lines = [
        *speed_lines(found),
        "",
        benchmark.table(["start", "in process", "isolated", "more", "at least"], start_rows(values)),
    ]
    benchmark.publish("isolation", "\n".join(lines), {"speeds": found, "starts_ns": values}, arguments)


if __name__ == "__main__":
    main()
