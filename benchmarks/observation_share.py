"""Measure the observations' share of a step of grid/toy, with the original and the optimized encoder.

    ./.venv/bin/python benchmarks/observation_share.py [--rounds 12] [--quick]

Every side is timed phase by phase, as `hotloop profile` does it; a tenth of its steps, run before each block,
is in the phases too. The original encoder needs last step's tokens cleared first, which is done in the phase
`reset`; that time stands in a column of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import hotloop
from hotloop.stats.ratio import Ratio, ratio
from hotloop.stats.summary import Summary, summarise
from interleaved import output
from interleaved.batches import BatchSide
from interleaved.rounds import run_rounds
from interleaved.sides import one_core
from interleaved.stepping import Block, pin

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


class PhasedSide:
    """A profiled batch that also keeps what each block spent in its phases."""

    def __init__(self, agents: int, encoder: str) -> None:
        self.name = side_name(agents, encoder)
        self._batch = hotloop.make(
            "grid/toy",
            num_envs=WORLDS,
            impl="native",
            threads=1,
            profile=True,
            agents=agents,
            encoder=encoder,
        )
        self._stepper = BatchSide(self.name, self._batch, warmup_calls=WARMUP_CALLS)
        self.phases: dict[str, list[float]] = {phase: [] for phase in PHASES}
        """Phase to ns per agent-step, one value a round."""

    def measure(self, agent_steps: int) -> Block:
        before, steps = self._batch.phase_totals(), self._batch.counters["agent_steps"]
        block = self._stepper.measure(agent_steps)
        after, done = self._batch.phase_totals(), self._batch.counters["agent_steps"] - steps
        for phase, values in self.phases.items():
            values.append((after[phase] - before[phase]) / done)
        return block


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """What the rounds say about one side."""

    ns_per_agent_step: Mapping[str, list[float]]
    """Phase to raw values, one a round."""
    share: Summary


def side_name(agents: int, encoder: str) -> str:
    return f"{agents} agents, {encoder}"


def shares_of(phases: Mapping[str, list[float]]) -> Shares:
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
        output.percent(costs["step"].cv),
    ]


def gain(agents: int, sides: Mapping[str, Shares]) -> Ratio:
    """How many times as long the observations of the original encoder take."""
    slow, fast = (sides[side_name(agents, encoder)].ns_per_agent_step["observations"] for encoder in ENCODERS)
    return ratio(slow, fast)


def measure(*, rounds: int, agent_steps: int) -> dict[str, Any]:
    made = [PhasedSide(agents, encoder) for agents in AGENTS for encoder in ENCODERS]
    run_rounds(made, rounds=rounds, agent_steps=agent_steps)
    sides = {side.name: shares_of(side.phases) for side in made}
    return {"sides": sides, "gains": {agents: gain(agents, sides) for agents in AGENTS}}


def page(values: Mapping[str, Any]) -> str:
    rows = [
        row(agents, encoder, values["sides"][side_name(agents, encoder)])
        for agents in AGENTS
        for encoder in ENCODERS
    ]
    lines = [
        f"- Time of the observations, original / optimized, {agents} agents: {output.ratio_text(one)}. "
        + output.resolution(one)
        for agents, one in values["gains"].items()
    ]
    return "\n\n".join([output.table(HEADER, rows), "\n".join(lines)])


def main() -> None:
    arguments = output.parser(__doc__).parse_args()
    pin(one_core())
    agent_steps = QUICK_AGENT_STEPS if arguments.quick else AGENT_STEPS
    values = measure(rounds=output.rounds_of(arguments), agent_steps=agent_steps)
    output.publish("observation_share", page(values), values, arguments)


if __name__ == "__main__":
    main()
