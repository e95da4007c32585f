"""Measure what `import hotloop` costs beyond NumPy's own import, and how long `hotloop --help` takes.

    ./.venv/bin/python benchmarks/startup.py [--rounds 20] [--quick]

Each value comes from a fresh interpreter; the kinds take turns. The first two rounds, which may read files
from disk and write compiled modules there, are thrown away.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import benchmark
from hotloop.core.clock import now_ns
from hotloop.core.record import Metric
from hotloop.stats.summary import summarise

PROGRAM = """
from time import perf_counter_ns
{before}
start = perf_counter_ns()
{timed}
print(perf_counter_ns() - start)
"""
CACHING = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""The environment of a user: compiled modules are kept from one start to the next."""
EVERYTHING = "import hotloop; hotloop.make"
"""Touching `make` imports what it needs: the lazy package by itself imports next to nothing."""


def import_ns(timed: str, *, before: str = "") -> int:
    """Time a statement in a fresh interpreter, inside it, after another."""
    program = PROGRAM.format(before=before, timed=timed)
    done = subprocess.run(
        [sys.executable, "-c", program], env=CACHING, check=True, capture_output=True, text=True
    )
    return int(done.stdout)


def command_ns(*command: str) -> int:
    """Time a whole command from the outside."""
    start = now_ns()
    subprocess.run(command, env=CACHING, check=True, stdout=subprocess.DEVNULL)
    return now_ns() - start


KINDS: Mapping[str, Callable[[], int]] = {
    "import numpy": lambda: import_ns("import numpy"),
    "import hotloop": lambda: import_ns("import hotloop"),
    "import hotloop and its make, after numpy": lambda: import_ns(EVERYTHING, before="import numpy"),
    "python -c pass": lambda: command_ns(sys.executable, "-c", "pass"),
    "hotloop --help": lambda: command_ns(str(Path(sys.executable).with_name("hotloop")), "--help"),
}


def measure(rounds: int) -> dict[str, list[int]]:
    """Give nanoseconds for each kind, one value a round, without the first two."""
    return {name: raw[2:] for name, raw in benchmark.in_turns(KINDS, rounds + 2).items()}


def row(name: str, ns: Metric) -> list[str]:
    extremes = f"{ns.min / 1e6:.1f} .. {ns.max / 1e6:.1f} ms"
    return [name, f"{ns.median / 1e6:.1f} ms", extremes, benchmark.percent(ns.cv)]


def main() -> None:
    arguments = benchmark.parser(__doc__, rounds=20).parse_args()
    values = measure(benchmark.rounds_asked(arguments))
    sums = {name: summarise(raw) for name, raw in values.items()}
    text = benchmark.table(
        ["what", "median", "over the rounds", "CV"], [row(name, ns) for name, ns in sums.items()]
    )
    benchmark.publish("startup", text, {"ns": values, "summaries": sums}, arguments)


if __name__ == "__main__":
    main()
