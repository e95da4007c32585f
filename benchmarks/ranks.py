"""Measure a training in several processes against the same one in one process with one thread.

    ./.venv/bin/python benchmarks/ranks.py [--ranks 2] [--seeds 6] [--rounds 12] [--quick]

Both train the same network on as many envs with the same minibatches, one thread a process, and take turns of
whole updates. Then both train anew with as many seeds, for as long, and their returns are compared.
"""

from contextlib import ExitStack, closing
from dataclasses import asdict
from statistics import fmean
from typing import Any

import benchmark
from hotloop.core.target import Target
from hotloop.judge.tune import learnt
from hotloop.lab.training.settings import read
from hotloop.lab.training.sides import TrainContender, TrainSide, untimed

TARGET = "prospector"
KEYS = {
    "num_envs": "256",
    "train.num_steps": "64",
    "train.minibatch_size": "4096",
    "train.torch_threads": "1",
}
LEARN_STEPS = 100_000
QUICK_STEPS = 16_384
WARM = 2
"""Updates before the first round."""


def target(ranks: int, **keys: object) -> Target:
    return Target(TARGET, {**KEYS, "train.ranks": str(ranks), **keys})


def name_of(ranks: int) -> str:
    return "one process" if ranks == 1 else f"{ranks} ranks"


def speeds(ranks: int, rounds: int) -> dict[str, Any]:
    """One process and so many ranks, in turns of one update."""
    with ExitStack() as stack:
        sides = [
            stack.enter_context(closing(TrainSide(name_of(each), untimed(read(target(each))))))
            for each in (1, ranks)
        ]
        for side in sides:
            side.run(WARM)
        values = benchmark.measure(sides, rounds=rounds, agent_steps=sides[0].grain)
    return {"sides": values, "ratio": benchmark.speed_ratio(values, name_of(ranks), name_of(1))}


def returns(ranks: int, seeds: int, env_steps: int) -> dict[str, Any]:
    """What one process and so many ranks have learnt after as many env-steps, seed by seed."""
    found: dict[str, list[float]] = {}
    for each in (1, ranks):
        found[name_of(each)] = [
            fmean(TrainContender(target(each, seed=seed, **{"train.seed": seed})).returns_after(env_steps))
            for seed in range(1, seeds + 1)
        ]
    told = learnt(env_steps, found[name_of(1)], found[name_of(ranks)])
    return {"returns": found, "learnt": asdict(told)}


def page(case: dict[str, Any], learning: dict[str, Any] | None, ranks: int) -> str:
    rows = [[way, *benchmark.rate_cells(side)] for way, side in case["sides"].items()]
    lines = [
        benchmark.table(["way", *benchmark.RATE_HEADER], rows),
        f"{TARGET}, speed of {ranks} ranks / of one process: {benchmark.ratio_text(case['ratio'], 2)}. "
        + benchmark.resolution(case["ratio"]),
    ]
    if learning:
        told = learning["learnt"]
        lines.append(
            f"Mean return after {told['env_steps']:,} env-steps, "
            + "; ".join(
                f"{way}: {', '.join(f'{x:.2f}' for x in each)}" for way, each in learning["returns"].items()
            )
            + f". {ranks} ranks beyond one process: {told['difference']:+.2f}"
            + (f" [{told['low']:+.2f}, {told['high']:+.2f}]" if told["low"] is not None else "")
            + "."
        )
    return "\n\n".join(lines)


def main() -> None:
    parser = benchmark.parser(__doc__)
    parser.add_argument("--ranks", type=int, default=2, help="processes, each with one thread (default 2)")
    parser.add_argument("--seeds", type=int, default=6, help="trainings of each side; 0 leaves them out")
    arguments = parser.parse_args()
    ranks = arguments.ranks
    if ranks > len(benchmark.usable_cores()):
        raise SystemExit(f"{ranks} ranks need as many cores, and {len(benchmark.usable_cores())} are there")
    case = speeds(ranks, benchmark.rounds_asked(arguments))
    seeds = min(arguments.seeds, 1) if arguments.quick else arguments.seeds
    steps = QUICK_STEPS if arguments.quick else LEARN_STEPS
    learning = returns(ranks, seeds, steps) if seeds else None
    benchmark.publish(
        f"ranks-{ranks}", page(case, learning, ranks), {"case": case, "learning": learning}, arguments
    )


if __name__ == "__main__":
    main()
