"""Tell where the time of the farm's twin goes, and what three changes bought.

    ./.venv/bin/python benchmarks/hotspots.py [--rounds 12] [--quick]

The twin of farm/steady is profiled by cProfile, its hottest functions by line, its allocations by site. Then
three changes are held against what was before by `hotloop compare`: the kind of index, the log in
transactions, and native perception. At last every kind of index is measured by size of population.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from importlib import import_module
from inspect import isfunction, isgeneratorfunction
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import benchmark
import hotloop
from hotloop.core.record import Record
from hotloop.lab.measure.sides import SubjectSide
from hotloop.stats.summary import summarise
from hotloop.worlds.farm.twin import Farm

TWIN = {"impl": "reference", "num_envs": 1, "agents": 60}
POLICY = "weighted"
TOP, LINED, SITES = 10, 5, 3
PLACE = re.compile(r"(?P<name>\w+) \((?P<folder>\w+)/(?P<file>\w+)\.py:\d+\)")
FOLDERS = {"farm": "hotloop.worlds.farm", "exact": "hotloop.core.exact_math"}
STEPS, QUICK_STEPS = 40, 4
CHANGES = {
    "index: a k-d tree, then a grid of cells": (
        "farm/index index=kdtree num_envs=1",
        "farm/index index=grid num_envs=1",
    ),
    "log: row by row, then transactions of 5,000": (
        "farm/log log_buffer=1 agents=500 num_envs=1",
        "farm/log log_buffer=5000 agents=500 num_envs=1",
    ),
    "perception: the twin, then native code": (
        "farm/perception impl=reference agents=60 num_envs=1",
        "farm/perception impl=native agents=60 num_envs=1",
    ),
}
SECONDS, QUICK_SECONDS = 15.0, 2.0
KINDS = ("grid", "hash", "quadtree", "kdtree")
SIZES = (100, 1_000, 10_000)
AGENT_STEPS, QUICK_AGENT_STEPS = 40_000, 4_000


def profiled(steps: int) -> Record:
    """The twin under cProfile, then its hottest functions by line and its allocations."""
    with TemporaryDirectory() as folder:
        look = partial(hotloop.profile, "farm/steady", policy=POLICY, steps=steps, files=Path(folder), **TWIN)
        first = look(probes=("cprofile",))
        hottest = list(islice(plain_functions(first), LINED))
        rest = look(probes=("line", "memory"), time=hottest)
        return replace(rest, findings=(*first.findings, *rest.findings))


def plain_functions(record: Record) -> Iterator[str]:
    """The functions of cProfile's table by their dotted names; a generator's lines run after it returns."""
    for place, *_ in tables_of(record, "cprofile")[0].rows:
        told = PLACE.fullmatch(str(place))
        if told is None or told["folder"] not in FOLDERS:
            continue
        module = import_module(f"{FOLDERS[told['folder']]}.{told['file']}")
        owner = module if hasattr(module, told["name"]) else Farm
        function = getattr(owner, told["name"], None)
        if isfunction(function) and not isgeneratorfunction(function):
            yield f"{function.__module__}.{function.__qualname__}"


def tables_of(record: Record, probe: str) -> Sequence[Any]:
    return next(found.tables for found in record.findings if found.probe == probe)


def hot_functions(record: Record) -> str:
    rows = tables_of(record, "cprofile")[0].rows[:TOP]
    cells = [
        [str(place), f"{calls:,}", f"{own / 1e6:,.1f}", f"{total / 1e6:,.1f}", f"{share:.1%}"]
        for place, calls, own, total, share in rows
    ]
    return benchmark.table(["function", "calls", "own ms", "with what it calls", "share"], cells)


def hot_lines(record: Record) -> str:
    """The dearest line of each function."""
    cells = []
    for table in tables_of(record, "line")[:LINED]:
        ran = [row for row in table.rows if row[2] is not None]
        if ran:
            _, hits, _, share, text = max(ran, key=lambda row: row[2])
            cells.append(
                [table.title.removeprefix("Lines of "), f"`{text.strip()}`", f"{hits:,}", f"{share:.1%}"]
            )
    return benchmark.table(["function", "its dearest line", "times", "share of the function"], cells)


def hot_sites(record: Record) -> str:
    table = next(each for each in tables_of(record, "memory") if each.title == "Allocations by site")
    cells = [[str(place), f"{count:,.0f}", f"{size / 1e3:,.1f}"] for place, count, size in table.rows[:SITES]]
    return benchmark.table(["site", "allocations a step", "KB a step"], cells)


def changes(seconds: float) -> Iterator[tuple[str, Record]]:
    for name, (before, after) in CHANGES.items():
        yield name, hotloop.compare(before, after, policy="random", seconds=seconds)


def change_row(name: str, record: Record) -> list[str]:
    [found] = record.comparisons
    by = [
        "" if each is None else f"{each.estimate:.2f} [{each.low:.2f}, {each.high:.2f}]"
        for each in (found.ratio, found.cpu)
    ]
    return [name, *by, found.outcome]


def by_population(rounds: int, agent_steps: int) -> dict[str, list[float]]:
    """CPU ns of an agent-step of farm/index, by kind and agents."""
    sides = {}
    for agents in SIZES:
        for kind in KINDS:
            name = f"{agents:,} {kind}"
            batch = hotloop.make("farm/index", num_envs=1, agents=agents, index=kind)
            sides[name] = SubjectSide(name, batch, "random")
    steps = {name: max(1, agent_steps // side.subject.spec.agents) for name, side in sides.items()}
    taken = benchmark.in_turns({n: partial(side.turn, steps[n]) for n, side in sides.items()}, rounds)
    costs = {
        name: [turn.cpu_ns / turn.env_steps / side.subject.spec.agents for turn in taken[name]]
        for name, side in sides.items()
    }
    for side in sides.values():
        side.close()
    return costs


def population_rows(costs: dict[str, list[float]]) -> list[list[str]]:
    """A row a population, with the kind that took least."""
    rows = []
    for agents in SIZES:
        medians = {kind: summarise(costs[f"{agents:,} {kind}"]).median for kind in KINDS}
        best = min(medians, key=lambda kind: medians[kind])
        rows.append([f"{agents:,}", *(f"{medians[kind]:,.0f}" for kind in KINDS), f"`index={best}`"])
    return rows


def main() -> None:
    arguments = benchmark.parser(__doc__).parse_args()
    quick = arguments.quick
    record = profiled(QUICK_STEPS if quick else STEPS)
    compared = dict(changes(QUICK_SECONDS if quick else SECONDS))
    costs = by_population(benchmark.rounds_asked(arguments), QUICK_AGENT_STEPS if quick else AGENT_STEPS)
    header = ["change", "speed, after / before", "by CPU time", "verdict"]
    ways = [f"{kind}, CPU ns" for kind in KINDS]
    lines = [
        f"Functions of the twin of farm/steady, {TWIN['agents']} agents, by their own time:",
        hot_functions(record),
        "The dearest line of each of the hottest functions:",
        hot_lines(record),
        "Where it allocates most often:",
        hot_sites(record),
        "Before and after, by `hotloop compare`:",
        benchmark.table(header, [change_row(name, each) for name, each in compared.items()]),
        "An agent-step of farm/index: a move, a build and two queries.",
        benchmark.table(["agents", *ways, "to be recommended"], population_rows(costs)),
    ]
    found = {
        "findings": [asdict(each) for each in record.findings],
        "comparisons": {n: [asdict(each) for each in r.comparisons] for n, r in compared.items()},
        "index": costs,
    }
    benchmark.publish("hotspots", "\n\n".join(lines), found, arguments)


if __name__ == "__main__":
    main()
