"""Measure what profiling costs: grid/toy with and without it, in pairs.

    ./.venv/bin/python benchmarks/profiling.py [--rounds 24] [--quick]

Both sides are made anew for every round, so that where their memory happens to lie is part of the spread and
not of the answer. A third side, without profiling too, shows the noise.
"""

from dataclasses import dataclass

import hotloop
from interleaved import output
from interleaved.batches import BatchSide
from interleaved.rounds import run_rounds, speed_ratio
from interleaved.sides import one_core
from interleaved.stepping import Block, pin

WORLDS = 64
AGENT_STEPS = 1_280_000
QUICK_AGENT_STEPS = 128_000
WARMUP_CALLS = 100
CLEAN, PROFILED, AGAIN = "profile=False", "profile=True", "profile=False again"


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshSide:
    """A batch made for each block and closed after it."""

    name: str
    profile: bool

    def measure(self, agent_steps: int) -> Block:
        batch = hotloop.make("grid/toy", num_envs=WORLDS, impl="native", threads=1, profile=self.profile)
        try:
            return BatchSide(self.name, batch, warmup_calls=WARMUP_CALLS).measure(agent_steps)
        finally:
            batch.close()


def main() -> None:
    arguments = output.parser(__doc__, rounds=24).parse_args()
    pin(one_core())
    sides = [FreshSide(name=name, profile=name == PROFILED) for name in (CLEAN, PROFILED, AGAIN)]
    agent_steps = QUICK_AGENT_STEPS if arguments.quick else AGENT_STEPS
    blocks = run_rounds(sides, rounds=output.rounds_of(arguments), agent_steps=agent_steps)
    cost, noise = speed_ratio(blocks, CLEAN, PROFILED), speed_ratio(blocks, CLEAN, AGAIN)
    values = output.side_values(blocks)
    drawn = output.table(
        ["side", *output.RATE_HEADER], [[name, *output.rate_cells(side)] for name, side in values.items()]
    )
    lines = [
        f"Time with profiling / without: {output.ratio_text(cost, 3)}.",
        f"Time without / without (noise): {output.ratio_text(noise, 3)}. {output.resolution(noise)}",
    ]
    text = "\n\n".join([drawn, *lines])
    output.publish("profiling", text, {"sides": values, "cost": cost, "noise": noise}, arguments)


if __name__ == "__main__":
    main()
