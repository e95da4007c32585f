"""line_profiler: the lines of functions, named ones or the hottest, how often each ran and how long."""

import gc
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from hotloop.core.clock import now_ns
from hotloop.core.record import stacks
from hotloop.core.record.profile import Finding, Table
from hotloop.core.registry import Probe, ProbeError, Scene, package_missing
from hotloop.core.sampler import name_of
from hotloop.probes import samples

MOST_FUNCTIONS = 5  # Looked at where none was named

COLUMNS = ("line", "hits", "total_ns", "share", "code")


def look(scene: Scene) -> Finding:
    """Play once with a trace on the lines of the functions that were named."""
    from line_profiler import LineProfiler

    profiler: Any = LineProfiler()
    looked_at = scene.functions or hottest(scene)
    for _, function in looked_at:
        profiler.add_function(function)
    play = scene.draw(scene.calls)
    begin = now_ns()
    profiler.enable()
    try:
        play()
    finally:
        profiler.disable()
    wall_ns = now_ns() - begin
    stats = profiler.get_stats()
    tables = tuple(
        table(name, function, stats.timings, unit_ns=stats.unit * 1e9) for name, function in looked_at
    )
    ran = [name for (name, _), each in zip(looked_at, tables, strict=True) if each.rows]
    if not ran:
        names = ", ".join(name for name, _ in looked_at)
        raise ProbeError(f"no line of {names} ran", "name functions that the loop calls in this process")
    return Finding(
        probe="line",
        facts={
            "ran": ran,
            "env_steps": scene.calls * scene.env_steps,
            "wall_ns": wall_ns,
            "slowdown": wall_ns / scene.clean_ns,
        },
        tables=tables,
    )


def hottest(scene: Scene) -> tuple[tuple[str, Any], ...]:
    """The functions where most of the time is, by samples: those that Python holds under their names."""
    below = samples.theirs(samples.sampled(scene).ns, scene.marker)
    wanted = [each.frame[:2] for each in stacks.functions(below)]
    held = {
        (name_of(each.__code__), each.__code__.co_filename): each
        for each in (*frozen_functions(), *gc.get_objects())
        if type(each) is FunctionType  # one whose __class__ runs user code is none
    }
    found = [(name, held[name, file]) for name, file in wanted if (name, file) in held]
    if not found:
        raise ProbeError("no function of yours was seen at work", "name functions with --time")
    return tuple(found[:MOST_FUNCTIONS])


def frozen_functions() -> Iterator[object]:
    """What modules and their classes hold: the collector does not tell of frozen objects."""
    if not gc.get_freeze_count():
        return
    for module in [each for each in sys.modules.values() if issubclass(type(each), ModuleType)]:
        for each in [*vars(module).values()]:
            yield each
            if issubclass(type(each), type):
                yield from [*vars(each).values()]


def table(name: str, function: Any, timings: Any, *, unit_ns: float) -> Table:
    """A function from its first line to its last; what never ran has no numbers."""
    from inspect import getsourcelines

    lines, first = getsourcelines(function)
    file = function.__code__.co_filename
    ran = {
        line: (hits, round(time * unit_ns))
        for (where, start, _), told in timings.items()
        if where == file and first <= start < first + len(lines)
        for line, hits, time in told
    }
    whole = sum(ns for _, ns in ran.values())
    rows = tuple(
        (number, *ran[number], ran[number][1] / whole if whole else 0.0, text.rstrip())
        if number in ran
        else (number, None, None, None, text.rstrip())
        for number, text in enumerate(lines, first)
    )
    return Table(title=f"Lines of {name}", columns=COLUMNS, rows=rows if ran else ())


probe = Probe(
    name="line",
    purpose="the lines of the functions that --time names, or of the five hottest",
    why_not=lambda: package_missing("line_profiler"),
    look=look,
)
