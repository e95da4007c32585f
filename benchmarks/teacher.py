"""Measure the grid's scripted teacher: decisions a second on one core, and what one costs as an episode ages.

    ./.venv/bin/python benchmarks/teacher.py [--rounds 12] [--quick]

A round is one episode of 64 worlds from its first step to its last, played by the teacher; only its choosing
is timed. The cost of a decision is the median over each hundred steps. Beside it stands what there was to
see: tokens and stations in an observation, which is what the teacher reads.

Worlds with a map in common begin alike and part as they go on, and the processor guesses branches better
while they are alike. So the episode is played a second time with one seed for all worlds, which stay alike to
the end, and a third time by one world, which has no other to be like; the call itself is then in the cost.
A fourth time the teacher reads token by token, which every processor can, and not many tokens at a time.
"""

from collections.abc import Callable
from itertools import count
from statistics import median
from time import perf_counter_ns
from typing import Any

import benchmark
import hotloop
from hotloop.envs.batch import Batch
from hotloop.stats.summary import Ratio, ratio

TARGETS = ("grid/guard", "grid/arena")
WORLDS = 64
STEPS, QUICK_STEPS = 1_000, 400
BLOCK = 100
WAYS = {
    "apart": "Worlds that begin alike and part as they go on",
    "alike": "Worlds that stay alike, one seed for all",
    "alone": "One world at a time, the call included",
    "closely": "As in the table, but read token by token",
}
UNUSED, TAG, FIRST_STATION = 255, 6, 3


def play(
    target: str, steps: int, *, worlds: int = WORLDS, seed: int | None = None, kernels: str = "auto"
) -> list[float]:
    """Play one episode, all worlds from one seed if given; the ns of a decision in each block of steps."""
    batch = hotloop.make(target, num_envs=worlds, impl="native", threads=1, kernels=kernels)
    batch.reset(None if seed is None else [seed] * worlds)
    decisions = worlds * batch.spec.agents
    costs = []
    for _ in range(steps):
        begin = perf_counter_ns()
        actions = batch.choose("teacher")
        costs.append((perf_counter_ns() - begin) / decisions)
        batch.step(actions)
    batch.close()
    return [median(costs[k : k + BLOCK]) for k in range(0, steps, BLOCK)]


def seen(target: str, steps: int) -> list[tuple[float, float]]:
    """Tokens and stations in an observation, the mean over each block of steps."""
    batch = hotloop.make(target, num_envs=WORLDS, impl="native", threads=1)
    batch.reset()
    counts = []
    for _ in range(steps):
        batch.step(batch.choose("teacher"))
        counts.append(counted(batch))
    batch.close()
    return [
        (mean_of(counts[k : k + BLOCK], 0), mean_of(counts[k : k + BLOCK], 1)) for k in range(0, steps, BLOCK)
    ]


def counted(batch: Batch) -> tuple[float, float]:
    location, feature, value = (batch.observations[..., k] for k in range(3))
    used = location != UNUSED
    stations = used & (feature == TAG) & (value >= FIRST_STATION)
    observations = WORLDS * batch.spec.agents
    return float(used.sum()) / observations, float(stations.sum()) / observations


def mean_of(counts: list[tuple[float, float]], which: int) -> float:
    return sum(count[which] for count in counts) / len(counts)


def main() -> None:
    arguments = benchmark.parser(__doc__, rounds=12).parse_args()
    benchmark.pin(benchmark.one_core())
    steps = QUICK_STEPS if arguments.quick else STEPS
    parts, values = [], {}
    for target in TARGETS:
        part, values[target] = measure(target, steps, benchmark.rounds_asked(arguments))
        parts.append(part)
    benchmark.publish("teacher", "\n\n".join(parts), values, arguments)


def turns(target: str, steps: int) -> dict[str, Callable[[], list[float]]]:
    """An episode in each of the ways; where a seed is given, every round has its own."""
    alike, alone = count(1), count(1)
    return {
        "apart": lambda: play(target, steps),
        "alike": lambda: play(target, steps, seed=next(alike)),
        "alone": lambda: play(target, steps, worlds=1, seed=next(alone)),
        "closely": lambda: play(target, steps, kernels="scalar"),
    }


def measure(target: str, steps: int, episodes: int) -> tuple[str, dict[str, Any]]:
    """Play in all the ways, which take turns."""
    rounds = benchmark.in_turns(turns(target, steps), episodes)
    there = seen(target, steps)
    aged = {way: last_over_first(each) for way, each in rounds.items()}
    closely = ratio([median(each) for each in rounds["closely"]], [median(each) for each in rounds["apart"]])
    costs = [median(blocks[k] for blocks in rounds["apart"]) for k in range(steps // BLOCK)]
    header = ["steps", "ns a decision", "tokens seen", "stations seen"]
    rows = [
        [
            f"{k * BLOCK} .. {(k + 1) * BLOCK - 1}",
            f"{costs[k]:.0f}",
            f"{there[k][0]:.1f}",
            f"{there[k][1]:.2f}",
        ]
        for k in range(steps // BLOCK)
    ]
    speed = f"{target}: {1e3 / median(costs):.2f} M decisions/s on one core."
    aging = f"{benchmark.ratio_text(aged['apart'], 3)} times the first ({episodes} episodes)."
    lines = [
        f"{speed} The last {BLOCK} steps of an episode cost {aging}",
        *(f"{WAYS[way]}: {benchmark.ratio_text(aged[way], 3)}." for way in ("alike", "alone", "closely")),
        f"A decision takes {benchmark.ratio_text(closely, 3)} times as long if it is read token by token.",
    ]
    found = {"ns_a_decision": rounds, "seen": there, "last_over_first": aged, "closely": closely}
    return "\n\n".join([*lines, benchmark.table(header, rows)]), found


def last_over_first(rounds: list[list[float]]) -> Ratio:
    return ratio([blocks[-1] for blocks in rounds], [blocks[0] for blocks in rounds])


if __name__ == "__main__":
    main()
