"""Measure what an agent-step of grid/toy costs from 8 to 1,000 agents a world, at one agent in fifty cells.

    ./.venv/bin/python benchmarks/scaling.py [--rounds 12] [--quick]

About 8,000 agents are in the batch whatever the size of a world, so that only the world's size changes.
"""

import benchmark
from hotloop.lab.measure.sides import SubjectSide

EDGES = {8: 20, 20: 32, 50: 50, 100: 71, 200: 100, 500: 158, 1000: 224}
"""Agents a world -> edge of its map in cells."""
BATCH_AGENTS = 8_000
AGENT_STEPS = 800_000
QUICK_AGENT_STEPS = 160_000
WARMUP_CALLS = 100
HEADER = ["agents", "map", "worlds", *benchmark.RATE_HEADER, "tokens used per agent"]


def side(agents: int) -> SubjectSide:
    return benchmark.batch_side(
        str(agents),
        "grid/toy",
        warmup_calls=WARMUP_CALLS,
        num_envs=BATCH_AGENTS // agents,
        threads=1,
        agents=agents,
        map_size=f"{EDGES[agents]}x{EDGES[agents]}",
    )


def row(agents: int, values: benchmark.SideValues) -> list[str]:
    edge, worlds = EDGES[agents], BATCH_AGENTS // agents
    return [
        str(agents),
        f"{edge}x{edge}",
        str(worlds),
        *benchmark.rate_cells(values),
        benchmark.tokens_cell(values),
    ]


def main() -> None:
    arguments = benchmark.parser(__doc__).parse_args()
    benchmark.pin(benchmark.one_core())
    agent_steps = QUICK_AGENT_STEPS if arguments.quick else AGENT_STEPS
    values = benchmark.measure(
        [side(agents) for agents in EDGES], rounds=benchmark.rounds_asked(arguments), agent_steps=agent_steps
    )
    smallest, largest = str(min(EDGES)), str(max(EDGES))
    growth = benchmark.speed_ratio(values, smallest, largest)
    drawn = benchmark.table(HEADER, [row(int(name), one) for name, one in values.items()])
    cost = f"Cost of an agent-step, {largest} agents / {smallest} agents: {benchmark.ratio_text(growth)}."
    text = "\n\n".join([drawn, cost, benchmark.resolution(growth)])
    benchmark.publish("scaling", text, {"sides": values, "largest_over_smallest": growth}, arguments)


if __name__ == "__main__":
    main()
