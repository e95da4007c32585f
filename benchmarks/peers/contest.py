"""A contest: ours and its peers in turns on one core, each in a process of its own.

Every entrant gets the same number of agent-steps and random actions prepared before its clock starts. Ours
takes part twice: the ratio of the two is this machine's noise. A peer that cannot be set up is named
loudly, and the others are measured.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments import PEERS, Environment, SetupFailure
from interleaved import output
from interleaved.rounds import run_rounds, speed_ratio
from interleaved.sides import ProcessSide, SideFailure, one_core

OURS, AGAIN = "hotloop", "hotloop again"
HEADER = ["side", "worlds", *output.RATE_HEADER, "tokens used per agent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """One side of a contest, before it is started."""

    name: str
    worker: str
    """Its script is <worker>_worker.py."""
    settings: Mapping[str, object]
    environment: Callable[[], Environment] | None = None
    """Makes a peer's own environment; None is ours."""

    def start(self, shared: Mapping[str, object]) -> ProcessSide:
        python = self.environment().python if self.environment else Path(sys.executable)
        return ProcessSide(self.name, python, PEERS / f"{self.worker}_worker.py", {**shared, **self.settings})


def ours(target: str, *, name: str = OURS, worlds: int, **parameters: object) -> Entrant:
    """Enter a batch of one of our targets, on one thread."""
    settings = {"target": target, "worlds": worlds, "threads": 1, "parameters": parameters}
    return Entrant(name=name, worker="hotloop", settings=settings)


def parser(description: str | None) -> argparse.ArgumentParser:
    """Make the parser of a contest's script."""
    options = output.parser(description)
    options.add_argument("--worlds", type=int, default=64, help="worlds in a batch, where there is one (64)")
    options.add_argument("--warmup-calls", type=int, default=500, help="calls before the first round (500)")
    return options


def run(
    entrants: Sequence[Entrant],
    pairs: Sequence[tuple[str, str]],
    arguments: argparse.Namespace,
    agent_steps: int,
) -> dict[str, Any]:
    """Measure all that can be started; `pairs` are (fast, slow), each to be given as a ratio of speeds."""
    shared = {"cores": one_core(), "warmup_calls": arguments.warmup_calls}
    with ExitStack() as stack:
        sides, missing = start(entrants, shared, stack)
        blocks = run_rounds(sides, rounds=output.rounds_of(arguments), agent_steps=agent_steps)
    return {
        "settings": {entrant.name: {**shared, **entrant.settings} for entrant in entrants},
        "facts": {side.name: side.facts for side in sides},
        "sides": output.side_values(blocks),
        "ratios": {
            f"{fast} / {slow}": speed_ratio(blocks, fast, slow)
            for fast, slow in pairs
            if {fast, slow} <= blocks.keys()
        },
        "noise": speed_ratio(blocks, OURS, AGAIN),
        "missing": missing,
    }


def start(
    entrants: Sequence[Entrant], shared: Mapping[str, object], stack: ExitStack
) -> tuple[list[ProcessSide], dict[str, str]]:
    """Start every side that can be; give those, and why the peers that are missing are."""
    sides, missing = [], {}
    for entrant in entrants:
        try:
            sides.append(stack.enter_context(entrant.start(shared)))
        except (SetupFailure, SideFailure) as failure:
            if entrant.environment is None:
                raise
            missing[entrant.name] = str(failure)
            print(f"\n!!! {entrant.name} IS MISSING FROM THIS RUN: {failure}\n", file=sys.stderr, flush=True)
    return sides, missing


def row(name: str, case: Mapping[str, Any]) -> list[str]:
    values, facts = case["sides"][name], case["facts"][name]
    label = f"{name}, version {facts['version']}"
    return [label, str(facts["worlds"]), *output.rate_cells(values), output.tokens_cell(values)]


def section(title: str, case: Mapping[str, Any]) -> str:
    """Write one contest's table, its ratios, its noise, and who is missing."""
    ratios = [f"- Speed, {pair}: {output.ratio_text(ratio)}." for pair, ratio in case["ratios"].items()]
    noise = f"- Noise, {OURS} / {AGAIN}: {output.ratio_text(case['noise'], 3)}. "
    return "\n\n".join(
        [
            f"### {title}",
            output.table(HEADER, [row(name, case) for name in case["sides"]]),
            "\n".join([*ratios, noise + output.resolution(case["noise"])]),
            *[f"**Missing: {name}.** {why}" for name, why in case["missing"].items()],
        ]
    )
