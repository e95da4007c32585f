"""Records of loops, envs and programs with a fault that is known, made by what makes real ones."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from support.records import MACHINE, PROFILE

from hotloop.core.record import Record, Resources
from hotloop.core.record.metadata import Described, Work
from hotloop.core.record.profile import Finding, Pauses, Phase, Table
from hotloop.core.time_tree import TimeTree, grow
from hotloop.lab.loop.record import (
    SAMPLES,
    STEPS,
    UPDATES,
    LoopLook,
    RunMetadata,
    RunResult,
    Windows,
    record_of,
)
from hotloop.lab.loop.run import LoopOptions
from hotloop.probes.resources import ResourceSample
from hotloop.stats.summary import with_metrics

Rows = Mapping[str, tuple[int, float]]
"""Path to calls and share of the time, in each window."""

WINDOWS = 8

WALL_NS = 100_000_000
"""Of a window."""

CODE: Any = {"version": "1", "commit": "0123abcd", "dirty": False, "compiler": None, "flags": None}


def loop(
    rows: Rows,
    *,
    steps: int = 1_000,
    updates: int = 10,
    params: Mapping[str, Any] | None = None,
    variant: Mapping[str, Any] | None = None,
    busy: tuple[float, float] = (3.0, 0.0),
    pauses: Pauses | None = None,
    memory: Sequence[int] = (100,) * 20,
    cores: int = 4,
    speed: float = 1.0,
    worked: Mapping[str, float] | None = None,
    slowing: float | None = None,
) -> Record:
    """A run of somebody's own loop, as `hotloop.run` records it.

    `memory` is in MiB; `slowing` is how many times as long the last update takes as the first, where the
    loop was looked at; `worked` is the share of a row's own time that it was on a core, where that is known.
    """
    known = worked or {}
    windows = Windows()
    counts = {UPDATES: updates, STEPS: steps, SAMPLES: 0}
    for number in range(WINDOWS):
        wall_ns = round(WALL_NS * (1 + 0.01 * (number % 3)) / speed)
        flat = (
            TimeTree(
                path=path,
                calls=calls,
                total_ns=round(wall_ns * share),
                cpu_ns=round(wall_ns * share * known[path]) if path in known else None,
            )
            for path, (calls, share) in rows.items()
        )
        windows.add(counts, TimeTree(total_ns=wall_ns, children=grow(flat)))
    found = RunResult(
        options=LoopOptions(name="own", params=params or {}, variant=variant or {}),
        origin=RunMetadata(
            date=datetime(2025, 1, 2, tzinfo=UTC),
            machine={**MACHINE, "cores": cores, "usable_cores": cores},  # type: ignore[typeddict-item]
            code=CODE,
        ),
        windows=windows,
        looks=[] if slowing is None else list(slowed(slowing)),
        counts={name: count * WINDOWS for name, count in counts.items()},
        left_open=(),
        threads=(),
        how="sync",
        hosted=False,
        mark_ns=30.0,
        thread_clock_ns=300.0,
        samples=[sample(at, mib, busy, len(memory)) for at, mib in enumerate(memory)],
        pauses=pauses or Pauses(),
        broken=None,
    )
    return record_of(found)


def slowed(times: float) -> Iterator[LoopLook]:
    """Thirty looks at equal work over some seconds, the last of which takes so many times as long."""
    for number in range(30):
        wall_ns = round(2 * WALL_NS * (1 + (times - 1) * number / 29))
        counts = {UPDATES: 1, STEPS: 100}
        yield LoopLook(counts=counts, times=TimeTree(total_ns=wall_ns), stage="", rss_bytes=0)


def sample(at: int, mib: int, busy: tuple[float, float], count: int) -> ResourceSample:
    """One look of many over ten seconds."""
    at_ns = at * 10_000_000_000 // count
    return ResourceSample(
        at_ns=at_ns,
        cpu_ns=round(busy[0] * at_ns),
        rss_bytes=mib << 20,
        read_bytes=0,
        written_bytes=0,
        threads=4,
        processes=1,
        cores=(0.5,),
        gpus=(),
        ready_ns=round(busy[1] * at_ns),
    )


def env(rows: Rows, *, steps: int = 4_000, num_envs: int = 4, **more: Any) -> Record:
    """A profile of somebody's Gymnasium env; the shares are of the wall time."""
    wall_ns = 10 * WALL_NS
    phases = [("wall", steps // num_envs, 1.0), *((f"wall/{path}", *each) for path, each in rows.items())]
    made = tuple(
        Phase(
            path=path,
            calls=calls,
            total_ns=round(wall_ns * share),
            mean_ns=wall_ns * share / max(calls, 1),
            share=share,
            rounds_ns=tuple(round(wall_ns * share / 10 * (1 + 0.01 * (n % 2))) for n in range(10)),
        )
        for path, calls, share in phases
    )
    described = Described(
        name="gym:Their-v0",
        world=None,
        impl="foreign",
        device="cpu",
        params={"seed": 42},
        workload_hash="abcdefabcdef",
        variant={"num_envs": num_envs, "interface": "gymnasium"},
    )
    usual: dict[str, Any] = {
        "target": described,
        "path": replace(PROFILE.path, requested="foreign", ran={"foreign": 1.0}),
        "work": Work(env_steps=steps, agent_steps=steps),
        "phases": made,
        "unaccounted_ns": 0,
        "resources": Resources(cpu_share=0.9, ready_share=0.0),
    }
    return with_metrics(replace(PROFILE, **usual | more))


def program(functions: Mapping[str, tuple[float, float]], **more: Any) -> Record:
    """A profile of a whole program: functions to their share with all they call, and CPU share of that."""
    rows = tuple((name, share, share, cpu) for name, (share, cpu) in functions.items())
    table = Table(
        title="Hot functions", columns=("function", "own_share", "total_share", "cpu_share"), rows=rows
    )
    usual: dict[str, Any] = {
        "target": replace(PROFILE.target, name="python train.py", world=None, impl="program", variant={}),
        "work": Work(runs=2),
        "phases": (),
        "unaccounted_ns": None,
        "overhead": None,
        "values": {"wall_ns": (1e9,)},
        "findings": (Finding(probe="samples", facts={"samples": 1_000}, tables=(table,)),),
        "resources": Resources(cpu_share=3.0, ready_share=0.0),
        "path": replace(PROFILE.path, requested="program", ran={"program": 1.0}, counters={"runs": 2}),
    }
    return replace(PROFILE, metrics={}, **usual | more)


def probed(record: Record, probe: str, facts: Mapping[str, Any], *tables: Table) -> Record:
    found = Finding(probe=probe, facts=dict(facts), tables=tables)
    return replace(record, findings=(*record.findings, found))


COUNTED = ("function", "calls", "own_ns", "total_ns", "own_share")


def counted(record: Record, function: str, calls: int, share: float) -> Record:
    """A thousand env-steps under cProfile beside it."""
    table = Table(title="Functions", columns=COUNTED, rows=((function, calls, 1, 1, share),))
    return probed(record, "cprofile", {"env_steps": 1_000}, table)


ENV = env({"env.step": (1_000, 0.9), "env.reset": (20, 0.03), "everything else": (1_000, 0.07)})

YOURS = Table(
    title="Your functions, by samples",
    columns=("function", "own_share", "total_share", "cpu_share"),
    rows=(("learn (env.py:9)", 0.02, 0.69, 1.0), ("Env.step (env.py:90)", 0.01, 0.89, 1.0)),
)
HOT = Table(
    title="Hot functions, by samples",
    columns=YOURS.columns,
    rows=(("backward (torch/graph.py:9)", 0.4, 0.4, 1.0), YOURS.rows[0]),
)


def at(code: str) -> Record:
    """Return a record whose lever spends most of its time at a line with this code."""
    facts = {"samples": 500, "hottest_line": f"env.py:9: {code}", "hottest_line_share": 0.9}
    return probed(ENV, "samples", facts, YOURS, HOT)
