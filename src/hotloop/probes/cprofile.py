"""cProfile: every call of every Python function, counted and timed; dear, and complete."""

import cProfile
import pstats
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hotloop.core.clock import now_ns
from hotloop.core.record import stacks
from hotloop.core.record.profile import Finding, Table
from hotloop.core.record.stacks import Frame, Stack
from hotloop.core.registry import Probe, Scene

COLUMNS = ("function", "calls", "own_ns", "total_ns", "own_share")

MOST_ROWS = 25

SMALLEST = 0.0005  # Of the whole; a part of the tree below it is counted with its caller

DEEPEST = 60

# The profiler's last call, which is no part of the play.
OFF = "<method 'disable' of '_lsprof.Profiler' objects>"

Function = tuple[str, int, str]  # File, line and name, as pstats has them

# Of a function: primitive calls, calls, own seconds, total seconds, and the same of each caller's share.
Stats = dict[Function, tuple[int, int, float, float, dict[Function, tuple[int, int, float, float]]]]


def look(scene: Scene) -> Finding:
    """Play once under cProfile."""
    play = scene.draw(scene.calls)
    profiler = cProfile.Profile()
    begin = now_ns()
    profiler.enable()
    try:
        play()
    finally:
        profiler.disable()
    wall_ns = now_ns() - begin
    facts = {
        "env_steps": scene.calls * scene.env_steps,
        "wall_ns": wall_ns,
        "slowdown": wall_ns / scene.clean_ns,
    }
    return describe(pstats.Stats(profiler), scene.folder, facts)


def describe(found: pstats.Stats, folder: Path, facts: dict[str, Any]) -> Finding:
    """The functions by their own time, with the files that others open."""
    found.dump_stats(folder / "cprofile.pstats")
    every: Stats = found.stats  # type: ignore[attr-defined]
    stats = {function: told for function, told in every.items() if function[2] != OFF}
    stacks.write(folder / "cprofile.speedscope.json", "cprofile", dict(tree(stats)))
    return Finding(
        probe="cprofile",
        facts=facts,
        tables=(Table(title="Functions by their own time", columns=COLUMNS, rows=rows(stats)),),
        files=("cprofile.pstats", "cprofile.speedscope.json"),
    )


def rows(stats: Stats) -> tuple[tuple[Any, ...], ...]:
    """The functions with most time of their own, the largest first."""
    whole = sum(own for _, _, own, _, _ in stats.values()) or 1.0
    longest = sorted(stats.items(), key=lambda item: -item[1][2])[:MOST_ROWS]
    return tuple(
        (stacks.place(frame_of(function)), calls, round(own * 1e9), round(total * 1e9), own / whole)
        for function, (_, calls, own, total, _) in longest
    )


def frame_of(function: Function) -> Frame:
    file, line, name = function
    return name, file, line


def tree(stats: Stats) -> Iterator[tuple[Stack, float]]:
    """Own seconds by chain of callers.

    cProfile knows of each call only who made it. A function's time in a chain is taken to be split among
    what it calls as it is over all chains; one that calls itself, by whatever way, is followed once.
    """
    below: dict[Function, list[tuple[Function, float]]] = {}
    for function, told in stats.items():
        for caller, shared in told[-1].items():
            below.setdefault(caller, []).append((function, shared[-1]))
    roots = [
        (function, told[3])
        for function, told in stats.items()
        if not any(caller in stats for caller in told[4])
    ]
    least = SMALLEST * sum(total for _, total in roots)

    def walk(chain: tuple[Function, ...], seconds: float) -> Iterator[tuple[Stack, float]]:
        function = chain[-1]
        scale = seconds / stats[function][3] if stats[function][3] else 0.0
        own = seconds
        for callee, total in below.get(function, ()):
            part = total * scale
            if part >= least and callee not in chain and len(chain) < DEEPEST:
                own -= part
                yield from walk((*chain, callee), part)
        if own > 0:
            yield tuple(map(frame_of, chain)), own

    for function, total in roots:
        yield from walk((function,), total)


probe = Probe(
    name="cprofile",
    purpose="every Python function: calls, own and total time; a pstats file and a tree",
    why_not=lambda: None,
    look=look,
)
