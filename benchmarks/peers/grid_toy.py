"""Measure grid/toy beside MettaGrid and PufferLib's snake, in turns on one core.

    ./.venv/bin/python benchmarks/peers/grid_toy.py [--agents 20,100] [--rounds 12] [--quick]

Each side is a process of its own, all pinned to the same core; one runs at a time, each with the same number
of agent-steps and random actions prepared before its clock starts. Hotloop takes part twice: the ratio of the
two is this machine's noise. A peer that cannot be set up is named loudly, and the others are measured.
"""

import argparse
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import environments
from interleaved import output
from interleaved.rounds import run_rounds, speed_ratio
from interleaved.sides import ProcessSide, SideFailure, one_core

OURS, AGAIN = "hotloop", "hotloop again"
PEERS = {"mettagrid": environments.mettagrid, "snake": environments.snake}
EDGE = 40
AGENT_STEPS = 512_000
QUICK_AGENT_STEPS = 64_000
HEADER = ["side", "worlds", *output.RATE_HEADER, f"speed of {OURS} / side", "tokens used per agent"]
READING = (
    "`mettagrid` steps one world in its C++ core; walls, agents and rules are like those of `hotloop`, not "
    "equal to them. `snake` is PufferLib's; it observes by copying an 11x11 window of bytes, without tokens."
)

Settings = Mapping[str, object]


def start(name: str, python: Path, worker: str, settings: Settings) -> ProcessSide:
    return ProcessSide(name, python, environments.PEERS / f"{worker}_worker.py", settings)


def start_ours(settings: Settings, stack: ExitStack) -> list[ProcessSide]:
    alone = {**settings, "threads": 1}
    return [stack.enter_context(start(name, Path(sys.executable), OURS, alone)) for name in (OURS, AGAIN)]


def start_peers(settings: Settings, stack: ExitStack) -> tuple[list[ProcessSide], dict[str, str]]:
    """Start every peer that can be set up; give those, and why the others are missing."""
    sides, missing = [], {}
    for name, made in PEERS.items():
        try:
            sides.append(stack.enter_context(start(name, made().python, name, settings)))
        except (environments.SetupFailure, SideFailure) as failure:
            missing[name] = str(failure)
            print(f"\n!!! {name} IS MISSING FROM THIS RUN: {failure}\n", file=sys.stderr, flush=True)
    return sides, missing


def measure(agents: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure all sides with so many agents a world."""
    settings = {
        "agents": agents,
        "edge": EDGE,
        "worlds": arguments.worlds,
        "cores": one_core(),
        "warmup_calls": arguments.warmup_calls,
    }
    agent_steps = QUICK_AGENT_STEPS if arguments.quick else AGENT_STEPS
    with ExitStack() as stack:
        peers, missing = start_peers(settings, stack)
        sides = [*start_ours(settings, stack), *peers]
        blocks = run_rounds(sides, rounds=output.rounds_of(arguments), agent_steps=agent_steps)
    return {
        "settings": settings,
        "facts": {side.name: side.facts for side in sides},
        "sides": output.side_values(blocks),
        "ratios": {side.name: speed_ratio(blocks, OURS, side.name) for side in sides if side.name != OURS},
        "missing": missing,
    }


def row(name: str, case: Mapping[str, Any]) -> list[str]:
    values, facts = case["sides"][name], case["facts"][name]
    ratio = output.ratio_text(case["ratios"][name]) if name in case["ratios"] else ""
    label = f"{name} {facts['version']}"
    return [label, str(facts["worlds"]), *output.rate_cells(values), ratio, output.tokens_cell(values)]


def section(agents: int, case: Mapping[str, Any]) -> str:
    """Write the table of one number of agents, its noise, and who is missing."""
    noise = case["ratios"][AGAIN]
    return "\n\n".join(
        [
            f"## {agents} agents a world, {EDGE}x{EDGE} cells",
            output.table(HEADER, [row(name, case) for name in case["sides"]]),
            f"Noise, {OURS} against itself: {output.ratio_text(noise, 3)}. {output.resolution(noise)}",
            *[f"**Missing: {name}.** {why}" for name, why in case["missing"].items()],
        ]
    )


def numbers(word: str) -> tuple[int, ...]:
    """Read numbers with commas between them."""
    return tuple(int(part) for part in word.split(","))


def main() -> None:
    options = output.parser(__doc__)
    options.add_argument(
        "--agents", type=numbers, default=(20, 100), help="agents a world, one table each (20,100)"
    )
    options.add_argument("--worlds", type=int, default=64, help="worlds in a batch, where there is one (64)")
    options.add_argument("--warmup-calls", type=int, default=500, help="calls before the first round (500)")
    arguments = options.parse_args()
    cases = {agents: measure(agents, arguments) for agents in arguments.agents}
    text = "\n\n".join([READING, *[section(agents, case) for agents, case in cases.items()]])
    output.publish("peers/grid_toy", text, {"cases": cases}, arguments.output)


if __name__ == "__main__":
    main()
