"""Measure one process with two threads against two processes with one, on the same two cores.

    ./.venv/bin/python benchmarks/threads.py [--rounds 12] [--quick]

Both ways step the same number of worlds of grid/toy: the two processes have half of them each, know nothing
of each other, and their rates are added up. What threads lose against them is the price of handing over.
"""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import benchmark
from hotloop.core.turn_clock import Turn
from hotloop.lab.compare.process import ProcessSide

BATCHES = (1_024, 4_096)
AGENTS = 20
CALLS = 30
QUICK_CALLS = 5
WARMUP_CALLS = 20
THREADS, PROCESSES = "one process, two threads", "two processes, one thread each"


class Together:
    """Workers that run at the same time, each with its share of the work; their rates are added up."""

    def __init__(self, name: str, workers: Sequence[ProcessSide]) -> None:
        self.name = name
        self._workers = workers

    def turn(self, env_steps: int) -> Turn:
        share = env_steps // len(self._workers)
        for worker in self._workers:
            worker.begin_turn(share)
        turns = [worker.end_turn() for worker in self._workers]
        done = sum(turn.env_steps for turn in turns)
        return Turn(round(done / sum(1 / turn.ns_per_env_step for turn in turns)), done)

    def counters(self) -> Mapping[str, int]:
        return sum((Counter(worker.counters()) for worker in self._workers), Counter())

    def close(self) -> None:
        for worker in self._workers:
            worker.close()


def worker(
    name: str, *, worlds: int, threads: int, cores: list[int], target: str = "grid/toy", **keys: object
) -> ProcessSide:
    """A batch in a process of its own on these cores, warm."""
    given = {"num_envs": worlds, "impl": "native", "threads": threads, **keys}
    with benchmark.pinned(cores):
        side = ProcessSide(
            name,
            Path(sys.executable),
            benchmark.HERE,
            {"target": {"name": target, "keys": given}, "seed": 42},
        )
    side.turn(WARMUP_CALLS * worlds)
    return side


def measure_ways(
    worlds: int, *, rounds: int, agent_steps: int, target: str = "grid/toy", **keys: object
) -> dict[str, Any]:
    """Let two threads and two processes, on the same two cores, take turns."""
    cores = two_cores()
    with ExitStack() as stack:
        threads = worker(THREADS, worlds=worlds, threads=2, cores=cores, target=target, **keys)
        stack.enter_context(closing(threads))
        halves = [
            stack.enter_context(
                closing(worker(PROCESSES, worlds=worlds // 2, threads=1, cores=[core], target=target, **keys))
            )
            for core in cores
        ]
        values = benchmark.measure(
            [threads, Together(PROCESSES, halves)], rounds=rounds, agent_steps=agent_steps
        )
    return {"sides": values, "ratio": benchmark.speed_ratio(values, THREADS, PROCESSES)}


def two_cores() -> list[int]:
    cores = benchmark.usable_cores()[-2:]
    if len(cores) < 2:
        raise SystemExit("this benchmark needs two cores that a process can be pinned to")
    return cores


def page(cases: dict[int, dict[str, Any]]) -> str:
    rows = [
        [str(worlds), way, *benchmark.rate_cells(side)]
        for worlds, case in cases.items()
        for way, side in case["sides"].items()
    ]
    lines = [
        f"{worlds} worlds, speed of two threads / of two processes: "
        f"{benchmark.ratio_text(case['ratio'], 3)}. " + benchmark.resolution(case["ratio"])
        for worlds, case in cases.items()
    ]
    return "\n\n".join([benchmark.table(["worlds", "way", *benchmark.RATE_HEADER], rows), *lines])


def main() -> None:
    arguments = benchmark.parser(__doc__).parse_args()
    calls = QUICK_CALLS if arguments.quick else CALLS
    rounds = benchmark.rounds_asked(arguments)
    cases = {
        worlds: measure_ways(worlds, rounds=rounds, agent_steps=calls * worlds * AGENTS, agents=AGENTS)
        for worlds in BATCHES
    }
    benchmark.publish("threads", page(cases), {"cases": cases}, arguments)


if __name__ == "__main__":
    main()
