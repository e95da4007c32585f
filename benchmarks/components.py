"""Measure the farm's components one by one, in turns on one core.

    ./.venv/bin/python benchmarks/components.py index|perception|resources|population [--quick]

`index`: an agent's share of each phase by kind of index, memory, and what points that moved cost.
`perception`: an observation by radius, interpolation and keeping of resources, each layer, and what a step
allocates. `resources`: phases and memory with nodes and food in memory or in a file. `population`: settings
by size of population. Times are CPU time, or phases' own clock, of which the turns that somebody else
interrupted are left out.
"""

import argparse
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time_ns
from typing import Any

import numpy as np

import benchmark
import hotloop
from hotloop.core.turn_clock import Turn
from hotloop.envs.spatial import KINDS, Index
from hotloop.lab.measure.resources import heap_reader, release_memory
from hotloop.lab.measure.sides import SubjectSide

AGENTS = 1_000
SEEING = 200
"""Agents that look around: of the widest windows an observation has 87 KB."""
RADII = (5, 6, 10, 20)
WAYS = {
    "bilinear, list": {"interpolation": "bilinear", "resources": "list"},
    "nearest, list": {"interpolation": "nearest", "resources": "list"},
    "bilinear, memmap": {"interpolation": "bilinear", "resources": "memmap"},
}
TURNS, QUICK_TURNS = 300, 6
"""Calls of each side whose phases are looked at."""
FEWEST_CALM = 20
MOVED = (0.01, 0.1, 1.0)
MOVING = (
    f"Memory of an index of {AGENTS:,} points, and µs of moving some of them with the query after it: what "
    "moved is sorted anew, and where that is more than half everything; immediately is at each single move."
)
ALLOCATES = (
    "A step of it takes up to {python:,.0f} bytes of Python's and gives back all but {kept:,.0f}; "
    "malloc has handed out {native:,.0f} bytes a step more at the end."
)
STATUS = Path("/proc/self/status")
KEPT = ("list", "memmap")
ENVS = 16
"""Of the farms whose memory is read."""
POPULATIONS = (100, 1_000, 10_000)
BUFFERS = (500, 5_000, 50_000)

Shown = tuple[str, dict[str, object]]
"""A page, and its raw values."""


def seen_side(name: str, target: str, **keys: Any) -> SubjectSide:
    side = SubjectSide(name, hotloop.make(target, num_envs=1, profile=True, **keys), "random")
    side.turn(3)
    return side


def taken_by(sides: Mapping[str, SubjectSide], rounds: int) -> dict[str, list[Turn]]:
    """Single calls in turns; those that another process disturbed are left out, if enough are left."""
    taken = benchmark.in_turns({name: partial(side.turn, 1, 0) for name, side in sides.items()}, rounds)
    for side in sides.values():
        side.close()
    calm = {name: [turn for turn in turns if not turn.disturbed] for name, turns in taken.items()}
    return {name: calm[name] if len(calm[name]) >= FEWEST_CALM else taken[name] for name in taken}


def phase_ns(turns: Sequence[Turn], agents: int) -> dict[str, list[float]]:
    """ns an agent of every phase, one a call."""
    names = [name for name in turns[0].phases if name != "step"]
    return {name: [turn.phases[name] / agents for turn in turns] for name in names}


def percentiles(values: Sequence[float]) -> str:
    """p50, p95 and p99 where there are enough for them."""
    ordered = sorted(values)
    shares = (0.5, 0.95, 0.99) if len(ordered) >= 100 else (0.5, 0.95)
    return " / ".join(f"{ordered[round(share * (len(ordered) - 1))]:,.1f}" for share in shares)


def index(quick: bool, _: int) -> Shown:
    rounds = QUICK_TURNS if quick else TURNS
    sides = {kind: seen_side(kind, "farm/index", agents=AGENTS, index=kind) for kind in KINDS}
    counters = {kind: sides[kind].subject.counters for kind in KINDS}
    phases = {kind: phase_ns(turns, AGENTS) for kind, turns in taken_by(sides, rounds).items()}
    names = ("build", "radius", "nearest")
    rows = [[kind, *(percentiles(phases[kind][name]) for name in names)] for kind in KINDS]
    points = np.random.default_rng(1).uniform(0, 316, (AGENTS, 2)).astype(np.float32)
    held = {kind: Index(kind, points, cell=10.0).bytes for kind in KINDS}
    moving = {kind: moved_costs(kind, points, rounds) for kind in KINDS}
    lines = [
        f"farm/index, {AGENTS:,} agents: ns an agent, p50 / p95 / p99 over calls.",
        benchmark.table(["index", *names], rows),
        MOVING,
        benchmark.table(["index", "KB", *moved_header()], [moved_row(k, held[k], moving[k]) for k in KINDS]),
    ]
    values = {"phase_ns": phases, "bytes": held, "moved_us": moving, "counters": counters}
    return "\n\n".join(lines), values


def moved_header() -> list[str]:
    ways = [f"{share:.0%} moved" for share in MOVED]
    return [*ways, f"{MOVED[0]:.0%}, immediately", "sorted in part / whole"]


def moved_row(kind: str, held: int, costs: Mapping[str, Any]) -> list[str]:
    cells = [f"{median(costs[name]):,.1f}" for name in moved_header()[:-1]]
    return [kind, f"{held / 1e3:.1f}", *cells, f"{costs['partial']} / {costs['whole']}"]


def moved_costs(kind: str, points: Any, rounds: int) -> dict[str, Any]:
    """CPU µs of moving a share of the points by a little and asking once; and how often what was sorted."""
    chance, found = np.random.default_rng(2), dict[str, Any]()
    names = moved_header()
    for name, share in zip(names, (*MOVED, MOVED[0]), strict=False):
        made = Index(kind, points, cell=10.0, updates="immediate" if "immediately" in name else "batched")
        count = max(1, int(share * len(points)))
        first = made.counters
        found[name] = [moved_once(made, points, count, chance) for _ in range(rounds)]
        if name == names[1]:
            told = made.counters
            found["partial"] = told["partial_rebuilds"] - first["partial_rebuilds"]
            found["whole"] = told["rebuilds"] - first["rebuilds"]
    return found


def moved_once(made: Index, points: Any, count: int, chance: np.random.Generator) -> float:
    """Neighbours move together, as those of one place do."""
    around = points[chance.integers(len(points))]
    near = np.argsort(((points - around) ** 2).sum(axis=1))[:count]
    to = np.clip(points[near] + chance.normal(0, 4, (count, 2)), 0, 316).astype(np.float32)
    begin = process_time_ns()
    made.move(near, to)
    made.nearby(around, 30.0)
    return (process_time_ns() - begin) / 1e3


def perception(quick: bool, rounds: int) -> Shown:
    turns = QUICK_TURNS if quick else TURNS // 5
    sides = {
        f"{radius} {way}": seen_side(
            f"{radius} {way}", "farm/perception", agents=SEEING, radius=radius, **keys
        )
        for radius in RADII
        for way, keys in WAYS.items()
    }
    whole = {name: phase_ns(each, SEEING)["whole"] for name, each in taken_by(sides, turns).items()}
    rows = [[str(radius), *(f"{median(whole[f'{radius} {way}']):,.0f}" for way in WAYS)] for radius in RADII]
    layers = {
        str(radius): seen_side(str(radius), "farm/perception", agents=SEEING, radius=radius, layered=True)
        for radius in RADII
    }
    drawn = {name: phase_ns(each, SEEING) for name, each in taken_by(layers, turns).items()}
    names = [name for name in drawn[str(RADII[0])] if name != "whole"]
    layer_rows = [[name, *(f"{median(drawn[str(radius)][name]):,.0f}" for radius in RADII)] for name in names]
    allocated = allocations(turns)
    lines = [
        f"farm/perception, {SEEING} agents: ns an observation, all layers at once.",
        benchmark.table(["radius", *WAYS], rows),
        "ns an observation of each layer, drawn one after another, by radius:",
        benchmark.table(["layer", *map(str, RADII)], layer_rows),
        ALLOCATES.format(**allocated),
    ]
    return "\n\n".join(lines), {"whole_ns": whole, "layer_ns": drawn, "allocated": allocated}


def allocations(steps: int) -> dict[str, float]:
    """Bytes a step: of Python at its peak and for good, and what malloc handed out more by the end."""
    batch = hotloop.make("farm/perception", num_envs=1, agents=SEEING)
    batch.reset()
    actions, heap = batch.choose("random"), heap_reader()
    batch.step(actions)
    before = heap() if heap else 0
    for _ in range(steps):
        batch.step(actions)
    native = ((heap() if heap else 0) - before) / steps
    tracemalloc.start()
    batch.step(actions)
    first = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    for _ in range(steps):
        batch.step(actions)
    last, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    batch.close()
    return {"python": peak - first, "kept": (last - first) / steps, "native": native}


def resources(quick: bool, _: int) -> Shown:
    sides = {kept: seen_side(kept, "farm/resources", agents=AGENTS, resources=kept) for kept in KEPT}
    taken = taken_by(sides, QUICK_TURNS if quick else TURNS)
    phases = {kept: phase_ns(turns, AGENTS) for kept, turns in taken.items()}
    memory = {kept: held_by(kept) for kept in KEPT}
    names = ("gathering", "regrowth", "windows")
    rows = [
        [
            kept,
            *(percentiles(phases[kept][name]) for name in names),
            f"{memory[kept]['RssAnon'] / 1e6:.2f}",
            f"{(memory[kept]['RssFile'] + memory[kept]['RssShmem']) / 1e6:.2f}",
        ]
        for kept in KEPT
    ]
    header = ["resources", *names, "MB of its own", "MB of the file"]
    about = (
        f"farm/resources, {AGENTS:,} agents: ns an agent, p50 / p95 / p99 over calls; and what {ENVS} such "
        "farms add to a process, in memory of its own and in pages of a file, which the system may take back."
    )
    return f"{about}\n\n{benchmark.table(header, rows)}", {"phase_ns": phases, "bytes": memory}


def held_by(kept: str) -> dict[str, int]:
    """Bytes that farms add to this process, by kind of page."""
    keys = {"num_envs": ENVS, "agents": AGENTS, "resources": kept, "radius": 1}
    release_memory()
    before = resident()
    batch = hotloop.make("farm/resources", **keys)
    batch.reset()
    batch.step(batch.choose("random"))
    release_memory()
    after = resident()
    batch.close()
    return {name: after[name] - before[name] for name in before}


def resident() -> dict[str, int]:
    lines = (line.split() for line in STATUS.read_text().splitlines() if line.startswith("Rss"))
    return {words[0].rstrip(":"): 1_024 * int(words[1]) for words in lines}


def population(quick: bool, rounds: int) -> Shown:
    envs = dict(by_envs(quick, rounds))
    logs = {name: [each / 1e3 for each in costs] for name, costs in by_buffer(quick, rounds)}
    rows = []
    for agents in POPULATIONS:
        several = {count: envs[f"{agents} {count}"] for count in counts_for(agents)}
        best = min(several, key=lambda count: median(several[count]))
        buffers = {size: median(logs[f"{agents} {size}"]) for size in BUFFERS}
        cells = [f"{median(several[count]):,.0f} ({count})" for count in several]
        rows.append(
            [
                f"{agents:,}",
                ", ".join(cells),
                ", ".join(f"{buffers[size]:,.2f}" for size in BUFFERS),
                f"`num_envs={best}`, `log_buffer={min(buffers, key=lambda size: buffers[size])}`",
            ]
        )
    header = [
        "agents",
        "CPU ns an agent-step without perception (envs)",
        f"CPU µs an agent-step with a log, buffers of {', '.join(f'{size:,}' for size in BUFFERS)}",
        "the least",
    ]
    return benchmark.table(header, rows), {"ns_by_envs": envs, "us_by_buffer": logs}


def counts_for(agents: int) -> tuple[int, ...]:
    """One env, and as many as make a thousand and ten thousand agents a call."""
    return tuple(sorted({1, max(1, 1_000 // agents), max(1, 10_000 // agents)}))


def by_envs(quick: bool, rounds: int) -> Iterator[tuple[str, list[float]]]:
    steps = 2_000 if quick else 40_000
    for agents in POPULATIONS:
        sides = {
            f"{agents} {count}": SubjectSide(
                f"{agents} {count}",
                hotloop.make("farm/steady", agents=agents, num_envs=count, perception=False, threads=1),
                "weighted",
            )
            for count in counts_for(agents)
        }
        yield from costs_of(sides, steps // agents, agents, rounds)


def by_buffer(quick: bool, rounds: int) -> Iterator[tuple[str, list[float]]]:
    steps = 1_000 if quick else 10_000
    for agents in POPULATIONS:
        with TemporaryDirectory(prefix="hotloop-log-") as folder:
            keys = {"agents": agents, "num_envs": 1, "perception": False, "log": folder}
            sides = {
                f"{agents} {size}": SubjectSide(
                    f"{agents} {size}", hotloop.make("farm/steady", log_buffer=size, **keys), "weighted"
                )
                for size in BUFFERS
            }
            yield from costs_of(sides, steps // agents, agents, rounds)


def costs_of(
    sides: Mapping[str, SubjectSide], env_steps: int, agents: int, rounds: int
) -> Iterator[tuple[str, list[float]]]:
    """CPU ns of an agent-step, round by round; the sides are closed."""
    turns = {name: partial(cost_ns, side, max(1, env_steps), agents) for name, side in sides.items()}
    yield from benchmark.in_turns(turns, rounds).items()
    for side in sides.values():
        side.close()


def cost_ns(side: SubjectSide, env_steps: int, agents: int) -> float:
    """CPU ns of an agent-step."""
    turn = side.turn(env_steps)
    return turn.cpu_ns_per_env_step / agents


PARTS: Mapping[str, Callable[[bool, int], Shown]] = {
    "index": index,
    "perception": perception,
    "resources": resources,
    "population": population,
}


def main() -> None:
    parser = benchmark.parser(__doc__)
    parser.add_argument("name", choices=tuple(PARTS))
    arguments: argparse.Namespace = parser.parse_intermixed_args()
    benchmark.pin(benchmark.one_core())
    text, values = PARTS[arguments.name](arguments.quick, benchmark.rounds_asked(arguments))
    benchmark.publish(f"components-{arguments.name}", text, values, arguments)


if __name__ == "__main__":
    main()
