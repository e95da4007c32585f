"""A contest: ours and its peers in turns on one core, each in a process of its own.

Every entrant is opened by the lab's worker, by its own Python, and gets the same number of agent-steps and
random actions prepared before its clock starts. Ours takes part twice: the ratio of the two is this
machine's noise. A peer that cannot be set up is named loudly, and the others are measured.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import benchmark
from environments import PEERS, Environment, SetupFailure
from hotloop.core.errors import InputError
from hotloop.core.machine import version
from hotloop.lab.compare.process import ProcessSide

OURS, AGAIN = "hotloop", "hotloop again"
SEED = 42
HEADER = ["side", "worlds", *benchmark.RATE_HEADER, "tokens used per agent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """One side of a contest, before it is started."""

    name: str
    target: str
    """What a worker opens: one of our targets, or a file of this folder and a callable in it."""
    given: Mapping[str, object]
    version: str = field(default_factory=version)
    environment: Callable[[], Environment] | None = None
    """Makes a peer's own environment; None is ours."""

    def start(self, warmup_calls: int) -> ProcessSide:
        python = self.environment().python if self.environment else Path(sys.executable)
        asked = {"target": {"name": self.target, "keys": self.given}, "seed": SEED}
        side = ProcessSide(self.name, python, PEERS, asked)
        side.turn(warmup_calls * side.facts["num_envs"])
        return side


def ours(target: str, *, name: str = OURS, worlds: int, **parameters: object) -> Entrant:
    """Enter a batch of one of our targets, on one thread."""
    given = {"num_envs": worlds, "impl": "native", "threads": 1, **parameters}
    return Entrant(name=name, target=target, given=given)


def parser(description: str | None) -> argparse.ArgumentParser:
    """Make the parser of a contest's script."""
    options = benchmark.parser(description)
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
    benchmark.pin(benchmark.one_core())
    with ExitStack() as stack:
        sides, missing = start(entrants, arguments.warmup_calls, stack)
        values = benchmark.measure(sides, rounds=benchmark.rounds_asked(arguments), agent_steps=agent_steps)
    return {
        "settings": {
            entrant.name: {"target": entrant.target, "given": entrant.given} for entrant in entrants
        },
        "cores": benchmark.one_core(),
        "warmup_calls": arguments.warmup_calls,
        "facts": {side.name: side.facts for side in sides},
        "versions": {entrant.name: entrant.version for entrant in entrants},
        "sides": values,
        "ratios": {
            f"{fast} / {slow}": benchmark.speed_ratio(values, fast, slow)
            for fast, slow in pairs
            if {fast, slow} <= values.keys()
        },
        "noise": benchmark.speed_ratio(values, OURS, AGAIN),
        "missing": missing,
    }


def start(
    entrants: Sequence[Entrant], warmup_calls: int, stack: ExitStack
) -> tuple[list[ProcessSide], dict[str, str]]:
    """Start every side that can be; give those, and why the peers that are missing are."""
    sides, missing = [], {}
    for entrant in entrants:
        try:
            sides.append(stack.enter_context(closing(entrant.start(warmup_calls))))
        except (SetupFailure, InputError) as failure:
            if entrant.environment is None:
                raise
            missing[entrant.name] = str(failure)
            print(f"\n!!! {entrant.name} IS MISSING FROM THIS RUN: {failure}\n", file=sys.stderr, flush=True)
    return sides, missing


def row(name: str, case: Mapping[str, Any]) -> list[str]:
    values, worlds = case["sides"][name], case["facts"][name]["num_envs"]
    label = f"{name}, version {case['versions'][name]}"
    return [label, str(worlds), *benchmark.rate_cells(values), benchmark.tokens_cell(values)]


def section(title: str, case: Mapping[str, Any]) -> str:
    """Write one contest's table, its ratios, its noise, and who is missing."""
    ratios = [f"- Speed, {pair}: {benchmark.ratio_text(ratio)}." for pair, ratio in case["ratios"].items()]
    noise = f"- Noise, {OURS} / {AGAIN}: {benchmark.ratio_text(case['noise'], 3)}. "
    return "\n\n".join(
        [
            f"### {title}",
            benchmark.table(HEADER, [row(name, case) for name in case["sides"]]),
            "\n".join([*ratios, noise + benchmark.resolution(case["noise"])]),
            *[f"**Missing: {name}.** {why}" for name, why in case["missing"].items()],
        ]
    )
