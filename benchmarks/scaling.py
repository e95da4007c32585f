"""Measure what an agent-step of grid/toy costs from 8 to 1,000 agents a world, at one agent in fifty cells.

    ./.venv/bin/python benchmarks/scaling.py [--rounds 12] [--quick]

About 8,000 agents are in the batch whatever the size of a world, so that only the world's size changes.
"""

import hotloop
from interleaved import output
from interleaved.batches import BatchSide
from interleaved.rounds import run_rounds, speed_ratio
from interleaved.sides import one_core
from interleaved.stepping import pin

EDGES = {8: 20, 20: 32, 50: 50, 100: 71, 200: 100, 500: 158, 1000: 224}
"""Agents a world -> edge of its map in cells."""
BATCH_AGENTS = 8_000
AGENT_STEPS = 800_000
QUICK_AGENT_STEPS = 160_000
WARMUP_CALLS = 100
HEADER = ["agents", "map", "worlds", *output.RATE_HEADER, "tokens used per agent"]


def side(agents: int) -> BatchSide:
    worlds = BATCH_AGENTS // agents
    batch = hotloop.make(
        "grid/toy",
        num_envs=worlds,
        impl="native",
        threads=1,
        agents=agents,
        map_size=f"{EDGES[agents]}x{EDGES[agents]}",
    )
    return BatchSide(str(agents), batch, warmup_calls=WARMUP_CALLS)


def row(agents: int, values: output.SideValues) -> list[str]:
    edge, worlds = EDGES[agents], BATCH_AGENTS // agents
    return [
        str(agents),
        f"{edge}x{edge}",
        str(worlds),
        *output.rate_cells(values),
        output.tokens_cell(values),
    ]


def main() -> None:
    arguments = output.parser(__doc__).parse_args()
    pin(one_core())
    agent_steps = QUICK_AGENT_STEPS if arguments.quick else AGENT_STEPS
    blocks = run_rounds(
        [side(agents) for agents in EDGES], rounds=output.rounds_of(arguments), agent_steps=agent_steps
    )
    smallest, largest = str(min(EDGES)), str(max(EDGES))
    growth = speed_ratio(blocks, smallest, largest)
    values = output.side_values(blocks)
    drawn = output.table(HEADER, [row(int(name), one) for name, one in values.items()])
    cost = f"Cost of an agent-step, {largest} agents / {smallest} agents: {output.ratio_text(growth)}."
    text = "\n\n".join([drawn, cost, output.resolution(growth)])
    output.publish("scaling", text, {"sides": values, "largest_over_smallest": growth}, arguments)


if __name__ == "__main__":
    main()
