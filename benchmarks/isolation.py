"""Measure what a process of its own costs somebody's environment: its speed, and its start.

    ./.venv/bin/python benchmarks/isolation.py [--rounds 12] [--seconds 30] [--quick]

The speed: one CartPole in this process and one behind a lifeline in another take turns, as in `hotloop
compare`, beside a second one in this process. The start: whole commands of one step, isolated and
`--in-process`, take turns; what the process adds is the difference, in CPU time and in wall time.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import benchmark
from hotloop.core.clock import now_ns
from hotloop.core.isolate import lifeline
from hotloop.core.record import Comparison
from hotloop.core.target import Target
from hotloop.lab.compare.compare import Asked, compare
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.compare.elsewhere import RemoteSide
from hotloop.lab.measure.settle import Plan
from hotloop.lab.measure.turns import Side
from hotloop.stats.summary import summarise

TARGET = Target("gym:CartPole-v1")

ONE_STEP = ("--rounds", "1", "--iterations", "1", "--warmup", "0")

HOTLOOP = str(Path(sys.executable).with_name("hotloop"))


class Isolated(TargetContender):
    """A target whose sides are in processes of their own, with a pulse that is shared."""

    def side(self, policy: str, *, profile: bool = False) -> Side:
        return RemoteSide(self.name, self.target, policy, profile=profile)


@contextmanager
def felt() -> Iterator[None]:
    """Have a pulse for other processes to share, as a supervisor has it."""
    beats, (messages, said) = os.memfd_create("pulse"), os.pipe()
    os.ftruncate(beats, lifeline.PAGE)
    told = f"{os.getpid()}:{said}:{beats}"
    before, lifeline.shared = lifeline.shared, lambda: {lifeline.VARIABLE: told}
    try:
        yield
    finally:
        lifeline.shared = before
        for each in (beats, messages, said):
            os.close(each)


def speeds(seconds: float) -> Comparison:
    plan = Plan(band=0.02, budget_ns=round(seconds * 1e9))
    with felt():
        record = compare(TargetContender(TARGET), Isolated(TARGET), Asked(plan=plan))
    return record.comparisons[0]


def started(*words: str) -> tuple[int, int]:
    """The wall time and the CPU time of a whole command, all its processes included."""
    with tempfile.TemporaryDirectory() as folder:
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), now_ns()
        subprocess.run(
            [HOTLOOP, "bench", TARGET.name, *ONE_STEP, *words], cwd=folder, check=False, capture_output=True
        )
        wall_ns, after = now_ns() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall_ns, round(cpu_s * 1e9)


def starts(rounds: int) -> dict[str, list[tuple[int, int]]]:
    kinds = {"isolated": started, "in process": lambda: started("--in-process")}
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
    parser = benchmark.parser(__doc__, rounds=12)
    parser.add_argument("--seconds", type=float, default=30.0, help="for the speed")
    arguments: argparse.Namespace = parser.parse_args()
    compared = speeds(2.0 if arguments.quick else arguments.seconds)
    values: dict[str, Any] = starts(benchmark.rounds_asked(arguments))
    lines = [
        f"isolated / in process: {benchmark.ratio_text(compared.ratio, 3) if compared.ratio else 'unknown'}",
        f"in process / itself:   {benchmark.ratio_text(compared.noise, 3) if compared.noise else 'unknown'}",
        f"verdict: {compared.outcome}, equal: {compared.difference is None}",
        "",
        benchmark.table(["start", "in process", "isolated", "more", "at least"], start_rows(values)),
    ]
    benchmark.publish("isolation", "\n".join(lines), {"starts_ns": values}, arguments)


if __name__ == "__main__":
    main()
