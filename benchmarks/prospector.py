"""Measure the prospector: on one core, in batches of 64 and of one; what each fast way buys; threads; resets.

    ./.venv/bin/python benchmarks/prospector.py [--rounds 12] [--quick]

Random play, which leaves out cashing out; resets are included. Every fast way has its plain way beside it, so
the ladder from all plain to all fast is measured in turns, one rung against the one below. Two threads are
held against two processes on the same two cores. A reset's cost comes from the phases of a batch that is
timed, and counts everything from the copy of the last observation to the new episode's first.
"""

from itertools import pairwise
from typing import Any

import numpy as np

import benchmark
import hotloop
from hotloop.core.record import Metric
from hotloop.core.turn_clock import RUN_IN, Turn
from hotloop.lab.measure.sides import SubjectSide, play
from hotloop.stats.summary import summarise
from threads import measure_ways

TARGET = "prospector/default"
ENVS = 64
WARMUP_CALLS = 2_000
STEPS = 400_000
QUICK_STEPS = 20_000
SINGLE = "batch of one"
VECTOR = "Gymnasium vector env of 64"
LADDER: dict[str, dict[str, str]] = {
    "all plain": {"packing": "full", "generation": "eager", "kernels": "scalar"},
    "packs what changed": {"generation": "eager", "kernels": "scalar"},
    "and makes asteroids on arrival": {"kernels": "scalar"},
    "and AVX2": {"kernels": "avx2"},
    "and AVX-512, all fast": {"kernels": "avx512"},
}
"""From the plain ways to the fast ones; each rung keeps what the ones before it have."""
CROWDS = (1_024, 4_096)
"""Envs of the batches that two threads share."""


def side(name: str, envs: int = ENVS, **given: Any) -> SubjectSide:
    return benchmark.batch_side(name, TARGET, warmup_calls=WARMUP_CALLS, num_envs=envs, threads=1, **given)


def ladder_sides() -> list[SubjectSide]:
    """The rungs this processor can climb."""
    sides = []
    for name, variant in LADDER.items():
        try:
            sides.append(side(name, **variant))
        except ValueError:
            print(f"left out: {name}, which this processor cannot run")
    return sides


class VectorSide:
    """Our vector env as Gymnasium makes it, stepped through its own interface."""

    name = VECTOR

    def __init__(self) -> None:
        import gymnasium

        self._envs = gymnasium.make_vec(f"hotloop/{TARGET.replace('/', '-')}-v0", num_envs=ENVS)
        self._envs.reset(seed=42)
        self._actions = hotloop.make(TARGET, num_envs=1).spec.drawn_actions
        self._random = np.random.default_rng(42)
        self._calls = 0
        self.turn(WARMUP_CALLS * ENVS)

    def turn(self, env_steps: int) -> Turn:
        calls = -(-env_steps // ENVS)
        self._play(-(-calls // RUN_IN))
        return Turn(self._play(calls), calls * ENVS)

    def _play(self, calls: int) -> int:
        self._calls += calls
        drawn = self._random.integers(self._actions, size=(calls, ENVS))
        return play(self._envs, list(drawn), calls)

    def counters(self) -> dict[str, int]:
        return dict.fromkeys(("env_steps", "agent_steps"), self._calls * ENVS)

    def close(self) -> None:
        self._envs.close()


def measure_ladder(rounds: int, steps: int) -> dict[str, Any]:
    sides = ladder_sides()
    names = [each.name for each in sides]
    values = benchmark.measure([*sides, side(SINGLE, envs=1), VectorSide()], rounds=rounds, agent_steps=steps)
    return {
        "sides": values,
        "rungs": {upper: benchmark.speed_ratio(values, upper, lower) for lower, upper in pairwise(names)},
        "whole": benchmark.speed_ratio(values, names[-1], names[0]),
    }


def measure_resets(rounds: int, steps: int) -> Metric:
    """Microseconds of a reset, one value a round."""
    timed = side("timed", profile=True)
    batch = timed.subject
    costs = []
    for _ in range(rounds):
        before, resets = batch.phase_totals()["autoreset"], batch.counters["resets"]
        timed.turn(steps)
        spent, done = batch.phase_totals()["autoreset"] - before, batch.counters["resets"] - resets
        costs.append(spent / done / 1e3)
    return summarise(costs)


def page(ladder: dict[str, Any], threads: dict[int, dict[str, Any]], resets: Metric) -> str:
    rows = [
        [
            name,
            *benchmark.rate_cells(side),
            benchmark.ratio_text(ladder["rungs"][name]) if name in ladder["rungs"] else "",
        ]
        for name, side in ladder["sides"].items()
    ]
    shared = [
        [f"{crowd:,} envs, {way}", *benchmark.rate_cells(side), ""]
        for crowd, measured in threads.items()
        for way, side in measured["sides"].items()
    ]
    lines = [
        f"All fast / all plain: {benchmark.ratio_text(ladder['whole'])}. "
        + benchmark.resolution(ladder["whole"]),
        *(
            f"Two threads / two processes, {crowd:,} envs: {benchmark.ratio_text(measured['ratio'], 3)}. "
            + benchmark.resolution(measured["ratio"])
            for crowd, measured in threads.items()
        ),
        f"A reset: {resets.median:.2f} µs, over the rounds {resets.min:.2f} .. {resets.max:.2f}.",
    ]
    header = ["way", *benchmark.RATE_HEADER, "speed / the row above"]
    return "\n\n".join([benchmark.table(header, [*rows, *shared]), *lines])


def main() -> None:
    arguments = benchmark.parser(__doc__).parse_args()
    rounds, steps = benchmark.rounds_asked(arguments), QUICK_STEPS if arguments.quick else STEPS
    threads = {
        crowd: measure_ways(crowd, rounds=rounds, agent_steps=2 * steps, target=TARGET) for crowd in CROWDS
    }
    benchmark.pin(benchmark.one_core())
    ladder, resets = measure_ladder(rounds, steps), measure_resets(rounds, steps)
    values = {"ladder": ladder, "threads": threads, "reset_us": resets}
    benchmark.publish("prospector", page(ladder, threads, resets), values, arguments)


if __name__ == "__main__":
    main()
