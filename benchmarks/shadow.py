"""Measure what a step of the grid costs with its shadow on, beside a step with either encoder.

    ./.venv/bin/python benchmarks/shadow.py [--rounds 12] [--quick]

With its shadow on a step encodes every observation twice and compares the bytes. What that may cost is a step
with the optimized encoder and one with the original together, and a fifth more.
"""

import os

import hotloop
from hotloop.stats.ratio import Ratio, ratio
from interleaved import output
from interleaved.batches import BatchSide
from interleaved.rounds import Blocks, run_rounds
from interleaved.sides import one_core
from interleaved.stepping import pin

PRESETS = ("grid/arena", "grid/guard", "grid/toy")
WAYS = {
    "optimized": {"encoder": "optimized"},
    "original": {"encoder": "original"},
    "shadow": {"encoder": "optimized", "shadow": True},
    "shadow, original first": {"encoder": "original", "shadow": True},
}
ALLOWED = 1.2
AGENT_STEPS = 200_000
QUICK_AGENT_STEPS = 40_000
WARMUP_CALLS = 30
HEADER = ["preset", *(f"{way}, ns" for way in WAYS), "shadow / both", "original first / both", "at most"]


def measure(preset: str, rounds: int, agent_steps: int) -> Blocks:
    sides = [
        BatchSide(way, hotloop.make(preset, num_envs=64, impl="native", **keys), warmup_calls=WARMUP_CALLS)
        for way, keys in WAYS.items()
    ]
    return run_rounds(sides, rounds=rounds, agent_steps=agent_steps)


def against_both(blocks: Blocks, way: str) -> Ratio:
    """How many times as long a step takes as one with each encoder together, round by round."""
    costs = {name: [block.ns_per_agent_step for block in rows] for name, rows in blocks.items()}
    both = [sum(pair) for pair in zip(costs["optimized"], costs["original"], strict=True)]
    return ratio(costs[way], both)


def row(preset: str, values: dict[str, output.SideValues], ratios: list[Ratio]) -> list[str]:
    costs = [f"{1e9 / values[way].agent_steps_per_s.median:.0f}" for way in WAYS]
    return [preset, *costs, *map(output.ratio_text, ratios), f"{ALLOWED:g}"]


def main() -> None:
    arguments = output.parser(__doc__).parse_args()
    os.environ.pop("HOTLOOP_OBS_VALIDATION", None)
    pin(one_core())
    agent_steps = QUICK_AGENT_STEPS if arguments.quick else AGENT_STEPS
    rows, kept = [], {}
    for preset in PRESETS:
        blocks = measure(preset, output.rounds_of(arguments), agent_steps)
        values = output.side_values(blocks)
        ratios = [against_both(blocks, way) for way in list(WAYS)[2:]]
        rows.append(row(preset, values, ratios))
        kept[preset] = {"sides": values, "shadow_over_both": ratios}
    text = output.table(HEADER, rows) + "\n\n`both` is a step with each encoder; ns of an agent-step."
    output.publish("shadow", text, {"presets": kept}, arguments)


if __name__ == "__main__":
    main()
