"""Measure what a step of the grid costs with its shadow on, beside a step with either encoder.

    ./.venv/bin/python benchmarks/shadow.py [--rounds 12] [--quick]

With its shadow on a step encodes every observation twice and compares the bytes. What that may cost is a step
with the optimized encoder and one with the original together, and a fifth more.
"""

import os
from collections.abc import Mapping

import benchmark
from benchmark import SideValues
from hotloop.stats.summary import Ratio, ratio

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


def measure(preset: str, rounds: int, agent_steps: int) -> dict[str, SideValues]:
    sides = [
        benchmark.batch_side(way, preset, warmup_calls=WARMUP_CALLS, num_envs=64, **keys)
        for way, keys in WAYS.items()
    ]
    return benchmark.measure(sides, rounds=rounds, agent_steps=agent_steps)


def against_both(values: Mapping[str, SideValues], way: str) -> Ratio:
    """How many times as long a step takes as one with each encoder together, round by round."""
    each = (values[name].ns_per_agent_step for name in ("optimized", "original"))
    return ratio(values[way].ns_per_agent_step, [sum(pair) for pair in zip(*each, strict=True)])


def row(preset: str, values: Mapping[str, SideValues], ratios: list[Ratio]) -> list[str]:
    costs = [f"{1e9 / values[way].agent_steps_per_s.median:.0f}" for way in WAYS]
    return [preset, *costs, *map(benchmark.ratio_text, ratios), f"{ALLOWED:g}"]


def main() -> None:
    arguments = benchmark.parser(__doc__).parse_args()
    os.environ.pop("HOTLOOP_OBS_VALIDATION", None)
    benchmark.pin(benchmark.one_core())
    agent_steps = QUICK_AGENT_STEPS if arguments.quick else AGENT_STEPS
    rows, kept = [], {}
    for preset in PRESETS:
        values = measure(preset, benchmark.rounds_asked(arguments), agent_steps)
        ratios = [against_both(values, way) for way in list(WAYS)[2:]]
        rows.append(row(preset, values, ratios))
        kept[preset] = {"sides": values, "shadow_over_both": ratios}
    text = benchmark.table(HEADER, rows) + "\n\n`both` is a step with each encoder; ns of an agent-step."
    benchmark.publish("shadow", text, {"presets": kept}, arguments)


if __name__ == "__main__":
    main()
