"""Is the number of threads that a training chooses for itself the right one, idle and beside a busy process?

    ./.venv/bin/python benchmarks/torch_threads.py [--rounds 12] [--quick]

On two quiet cores about seven minutes; it says beforehand how many trainings there are, each of some seconds.

The same training runs with train.torch_threads=auto and with each fixed count that there are cores for, in
turns, each in a process of its own, first on a machine that is left alone, then with a process beside it that
never rests. What is held against the bar is the speed of auto over that of the best fixed count, by the
medians of their rounds, and over each of them with its interval.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import benchmark
from hotloop.stats.summary import ratio

AUTO = "auto"
BAR = 0.85
NEIGHBOURS = (0, 1)
RESTLESS = "import os; started = os.getppid()\nwhile os.getppid() == started: pass"
"""It ends with whoever started it."""
STEPS, QUICK_STEPS = 262_144, 32_768
EACH_S = 6.0
"""What one training takes on two quiet cores, most of it before its first step."""


@contextmanager
def busy(neighbours: int) -> Iterator[None]:
    """Meanwhile so many processes use all of a core that they can get."""
    started = [subprocess.Popen([sys.executable, "-c", RESTLESS]) for _ in range(neighbours)]
    try:
        yield
    finally:
        for each in started:
            each.kill()
            each.wait()


def steps_per_s(threads: str, total: int, folder: Path, numbers: Iterator[int]) -> float:
    """The speed of the median window of one training."""
    words = f"prospector num_envs=256 train.tensorboard=false train.log_every=2 train.total_timesteps={total}"
    command = [
        *(sys.executable, "-c", "import sys; from hotloop.cli.main import main; sys.exit(main())"),
        *("train", *words.split(), f"train.torch_threads={threads}", f"run=r{next(numbers)}", "--json"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    if not done.stdout:
        raise SystemExit(f"the training ended with {done.returncode}: {done.stderr[-500:]}")
    return median(json.loads(done.stdout)["values"]["env_steps_per_s"])


def fixed_counts() -> list[str]:
    """1, 2, 4, ... up to the cores there are."""
    cores = max(1, len(benchmark.usable_cores()))
    return [str(2**power) for power in range(cores.bit_length()) if 2**power <= cores]


def measured(total: int, rounds: int) -> dict[int, dict[str, list[float]]]:
    """Neighbours to what each setting's rounds came to."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="hotloop-") as made:
        numbers = count()
        turn = partial(steps_per_s, total=total, folder=Path(made), numbers=numbers)
        turns: dict[str, Callable[[], float]] = {
            each: partial(turn, each) for each in (AUTO, *fixed_counts())
        }
        trainings = len(turns) * len(NEIGHBOURS) * rounds
        print(f"{trainings} trainings, about {trainings * EACH_S / 60:.0f} minutes", file=sys.stderr)
        for neighbours in NEIGHBOURS:
            with busy(neighbours):
                found[neighbours] = benchmark.in_turns(turns, rounds)
    return found


def rows(found: dict[int, dict[str, list[float]]]) -> Iterator[list[str]]:
    for neighbours, speeds in found.items():
        fixed = {name: each for name, each in speeds.items() if name != AUTO}
        best = max(fixed, key=lambda name: median(fixed[name]))
        share = median(speeds[AUTO]) / median(fixed[best])
        beside = ", ".join(
            f"{name} {benchmark.ratio_text(ratio(speeds[AUTO], each))}" for name, each in fixed.items()
        )
        yield [
            str(neighbours),
            ", ".join(f"{name} {median(each) / 1e3:,.1f} k" for name, each in speeds.items()),
            beside,
            f"{share:.2f} (of {best})",
            "yes" if share >= BAR else "no",
        ]


def main() -> None:
    arguments = benchmark.parser(__doc__, rounds=12).parse_args()
    total = QUICK_STEPS if arguments.quick else STEPS
    found = measured(total, benchmark.rounds_asked(arguments))
    header = ["busy neighbours", "steps/s", "auto / fixed", "auto / best fixed", f"at least {BAR:.0%}"]
    text = benchmark.table(header, list(rows(found)))
    kept: dict[str, Any] = {"steps_per_s": {str(key): each for key, each in found.items()}}
    benchmark.publish("torch_threads", f"prospector, 256 envs.\n\n{text}", kept, arguments)


if __name__ == "__main__":
    main()
