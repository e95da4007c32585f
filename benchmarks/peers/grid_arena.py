"""Measure grid/arena beside MettaGrid's own arena, and grid/guard, which has no peer, in turns on one core.

    ./.venv/bin/python benchmarks/peers/grid_arena.py [--rounds 12] [--quick]

MettaGrid's arena shows a larger window in more tokens, so ours takes part with such observations too.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import benchmark
import environments
from contest import AGAIN, OURS, Entrant, ours, parser, run, section

AGENTS = 24
WIDE, GUARD = "hotloop as wide", "hotloop, grid/guard"
AS_WIDE = {"window": 13, "tokens": 500}
"""The observations of MettaGrid's arena."""
AGENT_STEPS = 256_000
QUICK_AGENT_STEPS = 32_000
READING = (
    "`mettagrid` steps one world of `make_arena(num_agents=24, combat=True)` in its C++ core, with random "
    "actions over all it has: 25x25 cells with walls and agents, noop and four moves, observations of 13x13 "
    "cells in up to 500 tokens. `hotloop` is `grid/arena`: stations, eight moves, two vibes, combat, 11x11 "
    f"cells in up to 200 tokens. `{WIDE}` has 13x13 cells and 500 tokens. `{GUARD}` is another world, "
    "listed for its own speed."
)


def entrants(worlds: int) -> list[Entrant]:
    return [
        ours("grid/arena", worlds=worlds),
        ours("grid/arena", name=AGAIN, worlds=worlds),
        ours("grid/arena", name=WIDE, worlds=worlds, **AS_WIDE),
        ours("grid/guard", name=GUARD, worlds=worlds),
        Entrant(
            name="mettagrid",
            target="mettagrid_batch.py:arena",
            given={"agents": AGENTS},
            version=environments.METTAGRID,
            environment=environments.mettagrid,
        ),
    ]


def main() -> None:
    arguments = parser(__doc__).parse_args()
    agent_steps = QUICK_AGENT_STEPS if arguments.quick else AGENT_STEPS
    pairs = [(OURS, "mettagrid"), (WIDE, "mettagrid")]
    case = run(entrants(arguments.worlds), pairs, arguments, agent_steps)
    cases = {f"grid/arena, {AGENTS} agents": case}
    text = "\n\n".join([READING, *[section(title, one) for title, one in cases.items()]])
    benchmark.publish("peers/grid_arena", text, {"cases": cases}, arguments)


if __name__ == "__main__":
    main()
