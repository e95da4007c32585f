"""Measure what profiling costs: grid/toy with and without it, in pairs.

    ./.venv/bin/python benchmarks/profiling.py [--rounds 24] [--quick]

Both sides are made anew for every round, so that where their memory happens to lie is part of the spread and
not of the answer. A third side, without profiling too, shows the noise.
"""

from functools import partial

import benchmark
from hotloop.core.turn_clock import Turn

WORLDS = 64
AGENTS = 20
AGENT_STEPS = 1_280_000
QUICK_AGENT_STEPS = 128_000
WARMUP_CALLS = 100
CLEAN, PROFILED, AGAIN = "profile=False", "profile=True", "profile=False again"


def fresh_turn(name: str, agent_steps: int) -> Turn:
    """The turn of a batch that is made for it and closed after it."""
    side = benchmark.batch_side(
        name,
        "grid/toy",
        warmup_calls=WARMUP_CALLS,
        num_envs=WORLDS,
        agents=AGENTS,
        threads=1,
        profile=name == PROFILED,
    )
    try:
        return side.turn(agent_steps // AGENTS)
    finally:
        side.close()


def main() -> None:
    arguments = benchmark.parser(__doc__, rounds=24).parse_args()
    benchmark.pin(benchmark.one_core())
    agent_steps = QUICK_AGENT_STEPS if arguments.quick else AGENT_STEPS
    turns = {name: partial(fresh_turn, name, agent_steps) for name in (CLEAN, PROFILED, AGAIN)}
    taken = benchmark.in_turns(turns, benchmark.rounds_asked(arguments))
    values = {name: benchmark.side_values(each, AGENTS) for name, each in taken.items()}
    cost, noise = (benchmark.speed_ratio(values, CLEAN, name) for name in (PROFILED, AGAIN))
    drawn = benchmark.table(
        ["side", *benchmark.RATE_HEADER],
        [[name, *benchmark.rate_cells(side)] for name, side in values.items()],
    )
    lines = [
        f"Time with profiling / without: {benchmark.ratio_text(cost, 3)}.",
        f"Time without / without (noise): {benchmark.ratio_text(noise, 3)}. {benchmark.resolution(noise)}",
    ]
    text = "\n\n".join([drawn, *lines])
    benchmark.publish("profiling", text, {"sides": values, "cost": cost, "noise": noise}, arguments)


if __name__ == "__main__":
    main()
