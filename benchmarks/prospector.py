"""Measure the prospector: on one core, in batches of 64 and of one; what each fast way buys; threads; resets.

    ./.venv/bin/python benchmarks/prospector.py [--rounds 12] [--quick]

Random play, which leaves out cashing out; resets are included. Every fast way has its plain way beside it, so
the ladder from all plain to all fast is measured in turns, one rung against the one below. Two threads are
held against two processes on the same two cores. A reset's cost comes from the phases of a batch that is
timed, and counts everything from the copy of the last observation to the new episode's first.
"""

from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import hotloop
from hotloop.stats.summary import Summary, summarise
from interleaved import output
from interleaved.batches import BatchSide, stepper_of
from interleaved.rounds import run_rounds, speed_ratio
from interleaved.sides import Side, Together, one_core
from interleaved.stepping import Block, Stepper, pin
from threads import PROCESSES, THREADS, two_cores, worker

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


def make(envs: int, **given: Any) -> Any:
    return hotloop.make(TARGET, num_envs=envs, impl="native", threads=1, **given)


def ladder_sides() -> list[BatchSide]:
    """The rungs this processor can climb."""
    sides = []
    for name, variant in LADDER.items():
        try:
            sides.append(BatchSide(name, make(ENVS, **variant), warmup_calls=WARMUP_CALLS))
        except ValueError:
            print(f"left out: {name}, which this processor cannot run")
    return sides


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSide:
    """Our vector env as Gymnasium makes it, stepped through its own interface."""

    name: str
    stepper: Stepper

    @classmethod
    def make(cls) -> Self:
        import gymnasium

        envs = gymnasium.make_vec(f"hotloop/{TARGET.replace('/', '-')}-v0", num_envs=ENVS)
        envs.reset(seed=42)
        actions = hotloop.make(TARGET, num_envs=1).spec.drawn_actions
        stepper = Stepper(envs.step, shape=(ENVS,), num_actions=actions, dtype="int64")
        stepper.warm_up(WARMUP_CALLS)
        return cls(name=VECTOR, stepper=stepper)

    def measure(self, agent_steps: int) -> Block:
        return self.stepper.measure(agent_steps)


def measure_ladder(rounds: int, steps: int) -> dict[str, Any]:
    sides = ladder_sides()
    names = [side.name for side in sides]
    single = BatchSide(SINGLE, make(1), warmup_calls=WARMUP_CALLS)
    blocks = run_rounds([*sides, single, VectorSide.make()], rounds=rounds, agent_steps=steps)
    rungs = {upper: speed_ratio(blocks, upper, lower) for lower, upper in pairwise(names)}
    return {
        "sides": output.side_values(blocks),
        "rungs": rungs,
        "whole": speed_ratio(blocks, names[-1], names[0]),
    }


def measure_threads(crowd: int, rounds: int, steps: int) -> dict[str, Any]:
    cores = two_cores()
    given = {"target": TARGET, "agents": None}
    with ExitStack() as stack:
        threads = stack.enter_context(worker(THREADS, worlds=crowd, threads=2, cores=cores, **given))
        processes = [
            stack.enter_context(worker(PROCESSES, worlds=crowd // 2, threads=1, cores=[core], **given))
            for core in cores
        ]
        sides: list[Side] = [threads, Together(PROCESSES, processes)]
        blocks = run_rounds(sides, rounds=rounds, agent_steps=2 * steps)
    return {"sides": output.side_values(blocks), "ratio": speed_ratio(blocks, THREADS, PROCESSES)}


def measure_resets(rounds: int, steps: int) -> Summary:
    """Microseconds of a reset, one value a round."""
    batch = make(ENVS, profile=True)
    stepper = stepper_of(batch)
    stepper.warm_up(WARMUP_CALLS)
    costs = []
    for _ in range(rounds):
        before, resets = batch.phase_totals()["autoreset"], batch.counters["resets"]
        stepper.measure(steps)
        spent, done = batch.phase_totals()["autoreset"] - before, batch.counters["resets"] - resets
        costs.append(spent / done / 1e3)
    return summarise(costs)


def page(ladder: dict[str, Any], threads: dict[int, dict[str, Any]], resets: Summary) -> str:
    rows = [
        [
            name,
            *output.rate_cells(side),
            output.ratio_text(ladder["rungs"][name]) if name in ladder["rungs"] else "",
        ]
        for name, side in ladder["sides"].items()
    ]
    shared = [
        [f"{crowd:,} envs, {way}", *output.rate_cells(side), ""]
        for crowd, measured in threads.items()
        for way, side in measured["sides"].items()
    ]
    lines = [
        f"All fast / all plain: {output.ratio_text(ladder['whole'])}. " + output.resolution(ladder["whole"]),
        *(
            f"Two threads / two processes, {crowd:,} envs: {output.ratio_text(measured['ratio'], 3)}. "
            + output.resolution(measured["ratio"])
            for crowd, measured in threads.items()
        ),
        f"A reset: {resets.median:.2f} µs, over the rounds {resets.min:.2f} .. {resets.max:.2f}.",
    ]
    header = ["way", *output.RATE_HEADER, "speed / the row above"]
    return "\n\n".join([output.table(header, [*rows, *shared]), *lines])


def main() -> None:
    arguments = output.parser(__doc__).parse_args()
    rounds, steps = output.rounds_of(arguments), QUICK_STEPS if arguments.quick else STEPS
    threads = {crowd: measure_threads(crowd, rounds, steps) for crowd in CROWDS}
    pin(one_core())
    ladder, resets = measure_ladder(rounds, steps), measure_resets(rounds, steps)
    values = {"ladder": ladder, "threads": threads, "reset_us": resets}
    output.publish("prospector", page(ladder, threads, resets), values, arguments)


if __name__ == "__main__":
    main()
