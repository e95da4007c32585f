"""Measure the observations' share of a step of grid/toy, with the original and the optimized encoder.

    ./.venv/bin/python benchmarks/observation_share.py [--rounds 12] [--quick]

Every side is timed phase by phase, as `hotloop profile` does it. The original encoder needs last step's
tokens cleared first, which is done in the phase `reset`; that time stands in a column of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import benchmark
from hotloop.core.record import Metric
from hotloop.core.turn_clock import Turn
from hotloop.lab.measure.sides import SubjectSide
from hotloop.stats.summary import Ratio, ratio, summarise

AGENTS = (20, 100)
ENCODERS = ("original", "optimized")
WORLDS = 64
AGENT_STEPS = 640_000
QUICK_AGENT_STEPS = 64_000
WARMUP_CALLS = 100
PHASES = ("observations", "reset", "step")
HEADER = [
    "agents",
    "encoder",
    "observations, share of the step",
    "over the rounds",
    "ns per agent-step: observations",
    "reset",
    "whole step",
    "CV",
]


def side(agents: int, encoder: str) -> SubjectSide:
    return benchmark.batch_side(
        side_name(agents, encoder),
        "grid/toy",
        warmup_calls=WARMUP_CALLS,
        num_envs=WORLDS,
        threads=1,
        profile=True,
        agents=agents,
        encoder=encoder,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """What the rounds say about one side."""

    ns_per_agent_step: Mapping[str, list[float]]
    """Phase to raw values, one a round."""
    share: Metric


def side_name(agents: int, encoder: str) -> str:
    return f"{agents} agents, {encoder}"


def shares_of(turns: Sequence[Turn], agents: int) -> Shares:
    phases = {phase: [turn.phases[phase] / (turn.env_steps * agents) for turn in turns] for phase in PHASES}
    pairs = zip(phases["observations"], phases["step"], strict=True)
    return Shares(ns_per_agent_step=phases, share=summarise([part / whole for part, whole in pairs]))


def row(agents: int, encoder: str, shares: Shares) -> list[str]:
    costs = {phase: summarise(values) for phase, values in shares.ns_per_agent_step.items()}
    return [
        str(agents),
        encoder,
        f"{shares.share.median:.1%}",
        f"{shares.share.min:.1%} .. {shares.share.max:.1%}",
        *[f"{costs[phase].median:.1f}" for phase in PHASES],
        benchmark.percent(costs["step"].cv),
    ]


def gain(agents: int, sides: Mapping[str, Shares]) -> Ratio:
    """How many times as long the observations of the original encoder take."""
    slow, fast = (sides[side_name(agents, encoder)].ns_per_agent_step["observations"] for encoder in ENCODERS)
    return ratio(slow, fast)


def measure(*, rounds: int, agent_steps: int) -> dict[str, Any]:
    pairs = {side_name(agents, encoder): (agents, encoder) for agents in AGENTS for encoder in ENCODERS}
    turns = {
        name: partial(side(agents, encoder).turn, agent_steps // agents)
        for name, (agents, encoder) in pairs.items()
    }
    taken = benchmark.in_turns(turns, rounds)
    sides = {name: shares_of(taken[name], agents) for name, (agents, _) in pairs.items()}
    return {"sides": sides, "gains": {agents: gain(agents, sides) for agents in AGENTS}}


def page(values: Mapping[str, Any]) -> str:
    rows = [
        row(agents, encoder, values["sides"][side_name(agents, encoder)])
        for agents in AGENTS
        for encoder in ENCODERS
    ]
    lines = [
        f"- Time of the observations, original / optimized, {agents} agents: {benchmark.ratio_text(one)}. "
        + benchmark.resolution(one)
        for agents, one in values["gains"].items()
    ]
    return "\n\n".join([benchmark.table(HEADER, rows), "\n".join(lines)])


def main() -> None:
    arguments = benchmark.parser(__doc__).parse_args()
    benchmark.pin(benchmark.one_core())
    agent_steps = QUICK_AGENT_STEPS if arguments.quick else AGENT_STEPS
    values = measure(rounds=benchmark.rounds_asked(arguments), agent_steps=agent_steps)
    benchmark.publish("observation_share", page(values), values, arguments)


if __name__ == "__main__":
    main()
