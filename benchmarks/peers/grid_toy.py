"""Measure grid/toy beside MettaGrid and PufferLib's snake, in turns on one core.

./.venv/bin/python benchmarks/peers/grid_toy.py [--agents 20,100] [--rounds 12] [--quick]
"""

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import benchmark
import environments
from contest import AGAIN, OURS, Entrant, ours, parser, run, section

EDGE = 40
AGENT_STEPS = 512_000
QUICK_AGENT_STEPS = 64_000
READING = (
    "`mettagrid` steps one world in its C++ core; walls, agents and rules are like those of `hotloop`, not "
    "equal to them. `snake` is PufferLib's; it observes by copying an 11x11 window of bytes, without tokens."
)


def measure(agents: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure all sides with so many agents a world."""
    worlds = arguments.worlds
    place = {"agents": agents, "edge": EDGE}
    entrants = [
        ours("grid/toy", worlds=worlds, agents=agents),
        ours("grid/toy", name=AGAIN, worlds=worlds, agents=agents),
        Entrant(
            name="mettagrid",
            target="mettagrid_batch.py:toy",
            given=place,
            version=environments.METTAGRID,
            environment=environments.mettagrid,
        ),
        Entrant(
            name="snake",
            target="snake_batch.py:batch",
            given={"worlds": worlds, **place},
            version=environments.PUFFERLIB,
            environment=environments.snake,
        ),
    ]
    agent_steps = QUICK_AGENT_STEPS if arguments.quick else AGENT_STEPS
    return run(entrants, [(OURS, "mettagrid"), (OURS, "snake")], arguments, agent_steps)


def numbers(word: str) -> tuple[int, ...]:
    """Read numbers with commas between them."""
    return tuple(int(part) for part in word.split(","))


def main() -> None:
    options = parser(__doc__)
    options.add_argument(
        "--agents", type=numbers, default=(20, 100), help="agents a world, one table each (20,100)"
    )
    arguments = options.parse_args()
    cases = {f"grid/toy, {agents} agents": measure(agents, arguments) for agents in arguments.agents}
    text = "\n\n".join([READING, *[section(title, case) for title, case in cases.items()]])
    benchmark.publish("peers/grid_toy", text, {"cases": cases}, arguments)


if __name__ == "__main__":
    main()
