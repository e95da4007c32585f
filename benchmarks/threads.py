"""Measure one process with two threads against two processes with one, on the same two cores.

    ./.venv/bin/python benchmarks/threads.py [--rounds 12] [--quick]

Both ways step the same number of worlds of grid/toy: the two processes have half of them each, know nothing
of each other, and their rates are added up. What threads lose against them is the price of handing over.
"""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from interleaved import output
from interleaved.rounds import run_rounds, speed_ratio
from interleaved.sides import BENCHMARKS, ProcessSide, Side, Together, usable_cores

WORKER = BENCHMARKS / "peers" / "hotloop_worker.py"
BATCHES = (1_024, 4_096)
AGENTS = 20
CALLS = 30
QUICK_CALLS = 5
WARMUP_CALLS = 20
THREADS, PROCESSES = "one process, two threads", "two processes, one thread each"


def worker(
    name: str,
    *,
    worlds: int,
    threads: int,
    cores: list[int],
    target: str = "grid/toy",
    agents: int | None = AGENTS,
) -> ProcessSide:
    settings = {
        "target": target,
        "parameters": {} if agents is None else {"agents": agents},
        "worlds": worlds,
        "threads": threads,
        "cores": cores,
        "warmup_calls": WARMUP_CALLS,
    }
    return ProcessSide(name, Path(sys.executable), WORKER, settings)


def two_cores() -> list[int]:
    cores = usable_cores()[-2:]
    if len(cores) < 2:
        raise SystemExit("this benchmark needs two cores that a process can be pinned to")
    return cores


def measure(worlds: int, *, rounds: int, calls: int) -> dict[str, Any]:
    cores = two_cores()
    with ExitStack() as stack:
        threads = stack.enter_context(worker(THREADS, worlds=worlds, threads=2, cores=cores))
        processes = [
            stack.enter_context(worker(PROCESSES, worlds=worlds // 2, threads=1, cores=[core]))
            for core in cores
        ]
        sides: list[Side] = [threads, Together(PROCESSES, processes)]
        blocks = run_rounds(sides, rounds=rounds, agent_steps=calls * worlds * AGENTS)
    return {"sides": output.side_values(blocks), "ratio": speed_ratio(blocks, THREADS, PROCESSES)}


def page(cases: dict[int, dict[str, Any]]) -> str:
    rows = [
        [str(worlds), way, *output.rate_cells(side)]
        for worlds, case in cases.items()
        for way, side in case["sides"].items()
    ]
    lines = [
        f"{worlds} worlds, speed of two threads / of two processes: {output.ratio_text(case['ratio'], 3)}. "
        + output.resolution(case["ratio"])
        for worlds, case in cases.items()
    ]
    return "\n\n".join([output.table(["worlds", "way", *output.RATE_HEADER], rows), *lines])


def main() -> None:
    arguments = output.parser(__doc__).parse_args()
    calls = QUICK_CALLS if arguments.quick else CALLS
    cases = {worlds: measure(worlds, rounds=output.rounds_of(arguments), calls=calls) for worlds in BATCHES}
    output.publish("threads", page(cases), {"cases": cases}, arguments)


if __name__ == "__main__":
    main()
