"""Measure the farm's log: rows a second by each way of writing, and what it leaves of a farm's speed.

    ./.venv/bin/python benchmarks/log.py [--rounds 12] [--quick]

The ways of writing take turns, each with the states of 100 agents a step, into a file of its own on the disk
that holds the system's temporary files. Then farm/steady with perception is played with a log and without, in
turns with the log alone. Every figure is given by the clock on the wall and by CPU time, which a busy machine
takes less from.
"""

import tracemalloc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory
from time import thread_time_ns
from typing import Any

import benchmark
import hotloop
from hotloop.core.turn_clock import Turn
from hotloop.lab.measure.sides import SubjectSide
from hotloop.stats.summary import ratio, summarise
from hotloop.worlds.farm.log import Database

AGENTS = 100
WAYS: dict[str, dict[str, Any]] = {
    "single rows": {"log_buffer": 1},
    "100 rows": {"log_buffer": 100},
    "500 rows": {"log_buffer": 500},
    "1,000 rows": {"log_buffer": 1_000},
    "5,000 rows": {"log_buffer": 5_000},
    "5,000, performance": {"log_buffer": 5_000, "log_profile": "performance"},
    "5,000, safety": {"log_buffer": 5_000, "log_profile": "safety"},
    "5,000, memory": {"log_buffer": 5_000, "log_profile": "memory"},
    "5,000, kept in memory": {"log_buffer": 5_000, "log_storage": "memory"},
    "5,000, by the caller": {"log_buffer": 5_000, "log_writer": "caller"},
}
BUFFERS = (100, 500, 1_000, 5_000)
FLUSHES = 120
STEPS, QUICK_STEPS, SINGLE_STEPS = 200, 50, 3
PLAYED = 400
"""Steps of a turn of the farm."""
BAR = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """What the rounds say of one side, in rows or agent-steps."""

    per_s: list[float]
    per_cpu_s: list[float]
    bytes_a_row: float = 0.0
    rows_an_agent_step: float = 0.0


def row_sides() -> dict[str, SubjectSide]:
    keys = {"num_envs": 1, "agents": AGENTS, "only_states": True}
    return {
        name: SubjectSide(name, hotloop.make("farm/log", **keys, **way), "random")
        for name, way in WAYS.items()
    }


def measure_rows(rounds: int, steps: int) -> dict[str, Rate]:
    sides = row_sides()
    turns = {
        name: partial(side.turn, SINGLE_STEPS if WAYS[name]["log_buffer"] == 1 else steps)
        for name, side in sides.items()
    }
    taken = benchmark.in_turns(turns, rounds)
    found = {name: rate(side, taken[name], "rows") for name, side in sides.items()}
    for side in sides.values():
        side.close()
    return found


def rate(side: SubjectSide, turns: list[Turn], what: str) -> Rate:
    counted = side.counters()
    each = counted[what] / counted["env_steps"]
    rows = counted.get("rows", 0)
    return Rate(
        per_s=[turn.env_steps * each * 1e9 / turn.ns for turn in turns],
        per_cpu_s=[turn.env_steps * each * 1e9 / turn.cpu_ns for turn in turns],
        bytes_a_row=counted.get("log.bytes", 0) / rows if rows else 0.0,
        rows_an_agent_step=rows / counted["agent_steps"],
    )


@contextmanager
def timed_flushes() -> Iterator[list[int]]:
    """The CPU time of each transaction meanwhile, of the thread that writes it."""
    taken: list[int] = []
    write = Database.write

    def timed(self: Database, *words: Any, **more: Any) -> None:
        begin = thread_time_ns()
        write(self, *words, **more)
        taken.append(thread_time_ns() - begin)

    Database.write = timed  # type: ignore[method-assign]
    try:
        yield taken
    finally:
        Database.write = write  # type: ignore[method-assign]


def flushes(buffer: int, count: int) -> dict[str, float]:
    """How long transactions take, and what is held in memory for them."""
    keys = {"num_envs": 1, "agents": AGENTS, "only_states": True, "log_buffer": buffer}
    batch = hotloop.make("farm/log", log_writer="caller", **keys)
    batch.reset()
    actions = batch.choose("random")
    with timed_flushes() as taken:
        while len(taken) < count:
            batch.step(actions)
        tracemalloc.start()
        while len(taken) < count + 2:
            batch.step(actions)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    batch.close()
    ordered = sorted(taken[1:count])
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    found = {name: ordered[round(share * (len(ordered) - 1))] / 1e6 for name, share in shares.items()}
    return {**found, "memory_mb": peak / 1e6}


def measure_farm(rounds: int, steps: int) -> dict[str, Rate]:
    """A farm with a log, without one, and the log alone with rows of all tables."""
    farm = {"num_envs": 1, "agents": AGENTS, "threads": 1}
    with TemporaryDirectory(prefix="hotloop-log-") as folder:
        sides = {
            "without": SubjectSide("without", hotloop.make("farm/steady", **farm), "weighted"),
            "with": SubjectSide("with", hotloop.make("farm/steady", log=folder, **farm), "weighted"),
            "log": SubjectSide("log", hotloop.make("farm/log", num_envs=1, agents=AGENTS), "random"),
        }
        taken = benchmark.in_turns({n: partial(side.turn, steps) for n, side in sides.items()}, rounds)
        found = {
            n: rate(side, taken[n], "rows" if n == "log" else "agent_steps") for n, side in sides.items()
        }
        for side in sides.values():
            side.close()
    return found


def way_row(name: str, found: Rate) -> list[str]:
    wall, cpu = summarise(found.per_s), summarise(found.per_cpu_s)
    spread = f"{cpu.min / 1e3:,.0f} .. {cpu.max / 1e3:,.0f} k"
    return [
        name,
        f"{wall.median / 1e3:,.0f} k",
        f"{cpu.median / 1e3:,.0f} k",
        spread,
        f"{found.bytes_a_row:.0f}",
    ]


def kept_share(farm: Mapping[str, Rate]) -> tuple[str, dict[str, object]]:
    """Agent-steps/s with the log, over the smaller of those without and what the log's rows allow."""
    each = farm["with"].rows_an_agent_step
    share = ratio(farm["with"].per_s, allowed(farm["without"].per_s, farm["log"].per_s, each))
    by_cpu = ratio(farm["with"].per_cpu_s, allowed(farm["without"].per_cpu_s, farm["log"].per_cpu_s, each))
    speeds = {name: summarise(rates.per_s).median for name, rates in farm.items()}
    text = (
        f"With perception, {AGENTS} agents, {each:.2f} rows an agent-step: {speeds['without'] / 1e3:,.0f} k "
        f"agent-steps/s without a log, {speeds['with'] / 1e3:,.0f} k with it; the log alone writes "
        f"{speeds['log'] / 1e3:,.0f} k rows/s. With it / the smaller of both bounds: "
        f"{benchmark.ratio_text(share)} by the clock, {benchmark.ratio_text(by_cpu)} for a CPU second, as on "
        f"one core; {BAR:.0%} are asked for."
    )
    return text, {"kept": {"wall": share, "cpu": by_cpu}}


def allowed(without: list[float], rows: list[float], each: float) -> list[float]:
    """What a run could reach if its steps and its rows were made side by side."""
    return [min(steps, written / each) for steps, written in zip(without, rows, strict=True)]


def main() -> None:
    arguments = benchmark.parser(__doc__).parse_args()
    rounds = benchmark.rounds_asked(arguments)
    steps = QUICK_STEPS if arguments.quick else STEPS
    ways = measure_rows(rounds, steps)
    spread = {buffer: flushes(buffer, FLUSHES // 4 if arguments.quick else FLUSHES) for buffer in BUFFERS}
    farm = measure_farm(rounds, steps if arguments.quick else PLAYED)
    header = ["transactions of", "rows/s, wall", "rows per CPU s", "over the rounds", "bytes a row"]
    text, share = kept_share(farm)
    cells = [
        [f"{buffer:,} rows", *(f"{each[name]:.2f}" for name in ("p50", "p95", "p99", "memory_mb"))]
        for buffer, each in spread.items()
    ]
    lines = [
        benchmark.table(header, [way_row(name, found) for name, found in ways.items()]),
        benchmark.table(["a transaction of", "p50, CPU ms", "p95", "p99", "MB held for it"], cells),
        text,
    ]
    found = {"ways": ways, "flushes": spread, "farm": farm, **share}
    benchmark.publish("log", "\n\n".join(lines), found, arguments)


if __name__ == "__main__":
    main()
