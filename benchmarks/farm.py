"""Measure what an agent-step of farm/steady costs, decisions included, at 100 to 10,000 agents a world.

    ./.venv/bin/python benchmarks/farm.py [--rounds 12] [--quick]

About 10,000 agents are in the batch whatever the size of a world, so that only the world's size changes; one
side more is a single world of 1,000. Decisions are weighted. All sides take turns on one core. Each speed is
given twice: by the clock on the wall, and by the CPU time that the process was given, which a busy machine
takes less from.
"""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import psutil

import benchmark
import hotloop
from hotloop.core.record import Metric
from hotloop.core.turn_clock import Turn
from hotloop.lab.measure.sides import SubjectSide
from hotloop.stats.summary import Ratio, ratio, summarise

PLAYER = "weighted"
WORLDS = {"1 of 1,000": (1, 1_000), "100 of 100": (100, 100), "1 of 10,000": (1, 10_000)}
"""Worlds in the batch, and agents of each."""
AGENT_STEPS = 200_000
QUICK_AGENT_STEPS = 20_000
WARMUP_CALLS = 3
MEMORY_AGENTS = 10_000
HEADER = ["worlds", "perception", "agent-steps/s, wall", "agent-steps per CPU s", "over the rounds", "CPU ns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What the rounds say about one side."""

    wall_ns: list[float]
    """Per agent-step, one a round."""
    cpu_ns: list[float]
    mean_population: float

    @property
    def per_cpu_s(self) -> Metric:
        return summarise([1e9 / ns for ns in self.cpu_ns])


def name_of(worlds: str, *, perception: bool) -> str:
    return f"{worlds}, {'13 channels' if perception else 'none'}"


def sides() -> list[SubjectSide]:
    made = []
    for worlds, (count, agents) in WORLDS.items():
        for perception in (False, True):
            keys = {"num_envs": count, "agents": agents, "perception": perception}
            batch = hotloop.make("farm/steady", impl="native", threads=1, **keys)
            side = SubjectSide(name_of(worlds, perception=perception), batch, PLAYER)
            side.turn(WARMUP_CALLS * count)
            made.append(side)
    return made


def measure(agent_steps: int, rounds: int) -> dict[str, Values]:
    opened = sides()
    agents = {side.name: side.subject.spec.agents for side in opened}
    turns = {side.name: partial(side.turn, max(1, agent_steps // agents[side.name])) for side in opened}
    taken = benchmark.in_turns(turns, rounds)
    return {side.name: values_of(side, taken[side.name]) for side in opened}


def values_of(side: SubjectSide, turns: list[Turn]) -> Values:
    """Of agent-steps as they were counted: a population that is held has as many as it has rows."""
    counted = side.counters()
    population = counted["agent_steps"] / counted["env_steps"]
    done = [turn.env_steps * population for turn in turns]
    return Values(
        wall_ns=[turn.ns / steps for turn, steps in zip(turns, done, strict=True)],
        cpu_ns=[turn.cpu_ns / steps for turn, steps in zip(turns, done, strict=True)],
        mean_population=population,
    )


def growth(values: Mapping[str, Values], *, perception: bool) -> Ratio:
    """What an agent-step costs in one world of 10,000, over what it costs in 100 of 100; by CPU time."""
    large, small = (
        values[name_of(worlds, perception=perception)] for worlds in ("1 of 10,000", "100 of 100")
    )
    return ratio(large.cpu_ns, small.cpu_ns)


def memory() -> dict[str, float]:
    """What a world of 10,000 adds to the process beyond its observations, and what many steps add to that."""
    process = psutil.Process()
    keys: dict[str, Any] = {"num_envs": 1, "agents": MEMORY_AGENTS, "perception": False, "threads": 1}
    with closing(hotloop.make("farm/steady", impl="native", num_envs=1, agents=10)) as first:
        first.reset()  # what any batch costs a process once
    before = process.memory_info().rss
    with closing(hotloop.make("farm/steady", impl="native", **keys)) as batch:
        batch.reset()
        for _ in range(10):
            batch.step(batch.choose(PLAYER))
        made = process.memory_info().rss
        return {"megabytes": (made - before) / 1e6}


def row(worlds: str, values: Values, *, perception: bool) -> list[str]:
    speed = values.per_cpu_s
    wall = summarise([1e9 / ns for ns in values.wall_ns]).median
    spread = f"{speed.min / 1e6:.3f} .. {speed.max / 1e6:.3f} M"
    shown = "13 channels" if perception else "none"
    cost = f"{1e9 / speed.median:,.0f}"
    return [worlds, shown, f"{wall / 1e6:.3f} M", f"{speed.median / 1e6:.3f} M", spread, cost]


def main() -> None:
    arguments = benchmark.parser(__doc__).parse_args()
    benchmark.pin(benchmark.one_core())
    used = memory()
    steps = QUICK_AGENT_STEPS if arguments.quick else AGENT_STEPS
    values = measure(steps, benchmark.rounds_asked(arguments))
    rows = [
        row(worlds, values[name_of(worlds, perception=perception)], perception=perception)
        for perception in (False, True)
        for worlds in WORLDS
    ]
    alone, seeing = (growth(values, perception=perception) for perception in (False, True))
    lines = [
        benchmark.table(HEADER, rows),
        (
            f"An agent-step in 1 world of 10,000 / in 100 of 100, by CPU time: without perception "
            f"{benchmark.ratio_text(alone)}, with it {benchmark.ratio_text(seeing)}."
        ),
        f"A world of {MEMORY_AGENTS:,} agents, no perception, adds {used['megabytes']:.1f} MB to a process.",
    ]
    found = {"sides": values, "growth": {"none": alone, "13 channels": seeing}, "memory": used}
    benchmark.publish("farm", "\n\n".join(lines), found, arguments)


if __name__ == "__main__":
    main()
