"""Folders of records for pages: a history with a change, a comparison, a training, sweeps, stacks."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from support.records import BENCH, PROFILE, bench_with

from hotloop.core.project import Budget
from hotloop.core.record import Record, write
from hotloop.core.record.comparison import ComparedSide, Comparison, Ratio
from hotloop.core.record.experiments import STEP_NS, Growth, Soak, Sweep, SweepPoint, Trend, Tried, Tuning
from hotloop.core.record.profile import Finding, Phase
from hotloop.judge.checks import hold
from hotloop.stats.summary import with_metrics

COMMITS = 24

MARKUP = "<img src=x onerror=\"document.title='hit'\"></script><script>document.title='hit'</script>"


def measured(number: int, speed: float, **more: Any) -> Record:
    """A bench of one commit."""
    code = {**BENCH.code, "commit": f"{number:08x}"}
    created = f"2026-01-{1 + number // 24:02d}T{number % 24:02d}:00:00+00:00"
    rounds = [speed * (1 + k % 3 / 1000) for k in range(8)]
    return replace(bench_with(rounds), code=code, created=created, run_id=f"bench-{number:04d}", **more)


def history(commits: int = COMMITS) -> list[Record]:
    """Half as fast from the middle on."""
    return [measured(k, (1e6 if k < commits // 2 else 5e5) + 100 * (k % 5)) for k in range(commits)]


def compared() -> Record:
    side = ComparedSide(
        name=MARKUP, run_id=None, target=BENCH.target, code=BENCH.code, work=BENCH.work, path=BENCH.path
    )
    comparison = Comparison(
        a=side,
        b=replace(side, name="grid/toy threads=2"),
        band=0.02,
        ratio=Ratio(estimate=1.5, low=1.4, high=1.6, pairs=20),
        outcome="faster",
        why="",
    )
    values = {"a.env_steps_per_s": (1.0,), "b.env_steps_per_s": (1.5,)}
    return replace(
        BENCH, kind="compare", run_id="compare-1", comparisons=(comparison,), values=values, metrics={}
    )


def trained() -> Record:
    values = {
        "env_steps_per_s": (1e4, 2e4, 3e4),
        "return_per_agent": (0.0, 0.5, 1.0),
        "wall_ns": (1e9, 1e9, 1e9),
        "env_steps": (1e4, 2e4, 3e4),
    }
    rows = (("wall", 3_000_000_000), ("wall/rollout", 2_000_000_000), ("wall/learn", 900_000_000))
    phases = tuple(
        Phase(path=path, calls=3, total_ns=ns, mean_ns=ns / 3, share=ns / 3e9) for path, ns in rows
    )
    record = replace(BENCH, kind="train", run_id="train-1", values=values, metrics={}, phases=phases)
    return with_metrics(record)


FLOOR = Budget(name="toy-floor", target="grid/toy", metric="env_steps_per_s", limit=4.9e5, owner="sim team")
GOAL = replace(FLOOR, name="toy-goal", limit=9e9, enforce=False, owner="")


def budgeted() -> Record:
    """A run that was held against a floor."""
    held = hold(FLOOR, date(2026, 1, 2), now=[5e5] * 8)
    return replace(BENCH, kind="gate", run_id="gate-1", held=held, metrics={})


def scaled() -> Record:
    """A step that grows with the agents, by a law."""
    sizes = (10, 100, 1000)
    points = tuple(
        SweepPoint(at={"agents": str(size)}, values={STEP_NS: (20.0 + size,) * 2}, env_steps=100)
        for size in sizes
    )
    law = Growth(
        axis="agents",
        at={},
        metric=STEP_NS,
        law="linear",
        exponent=1.0,
        low=0.9,
        high=1.1,
        constant=20,
        factor=1,
    )
    swept = Sweep(axes={"agents": tuple(map(str, sizes))}, repeats=2, points=points, growths=(law,))
    return replace(BENCH, kind="scale", run_id="scale-1", sweep=swept, values={}, metrics={})


def tuned() -> Record:
    """Six combinations of two settings, of which the last is the fastest."""
    pairs = [(envs, threads) for envs in ("8", "32", "128") for threads in ("1", "2")]
    tried = tuple(
        Tried(
            at={"num_envs": envs, "threads": threads},
            speeds=(),
            median=1e5 * (k + 1),
            low=None,
            high=None,
            rungs=1,
            rss_bytes=1e6 * (k + 1),
            latency_ns=1e4 * (k + 1),
            best=k == 5,
        )
        for k, (envs, threads) in enumerate(pairs)
    )
    found = Tuning(
        axes={"num_envs": ("8", "32", "128"), "threads": ("1", "2")},
        present="grid/toy",
        tried=tried,
        skipped=(),
        winner=tried[-1].at,
        words="grid/toy num_envs=128 threads=2",
        kept=False,
    )
    return replace(BENCH, kind="tune", run_id="tune-1", tuning=found, values={}, metrics={})


def soaked() -> Record:
    """Memory that rises."""
    curve = tuple((float(k), 5e7 + 1e4 * k) for k in range(20))
    rises = Trend(name="rss_bytes", slope=6e5, low=5e5, high=7e5, growth=2e5, alarm=True, curve=curve)
    found = Soak(seconds=20, env_steps=1000, looks=20, cut=4, fresh=4, trends=(rises,))
    return replace(BENCH, kind="soak", run_id="soak-1", soak=found, values={}, metrics={})


def profiled(number: int) -> Record:
    found = Finding(probe="cprofile", files=("cprofile.speedscope.json",))
    named = replace(PROFILE.target, name=f"grid/toy {MARKUP}")
    created = f"2026-02-0{number}T00:00:00+00:00"
    return replace(PROFILE, run_id=f"profile-{number}", created=created, target=named, findings=(found,))


def speedscope(slow: float) -> dict[str, Any]:
    """Two functions below one, of which the second takes longer and longer."""
    frames = [
        {"name": name, "file": "/a/env.py", "line": k} for k, name in enumerate(("play", "move", "look"))
    ]
    profile = {
        "type": "sampled",
        "name": "x",
        "unit": "seconds",
        "startValue": 0,
        "endValue": 1 + slow,
        "samples": [[0, 1], [0, 2]],
        "weights": [1.0, slow],
    }
    return {"shared": {"frames": frames}, "profiles": [profile]}


def fill(folder: Path, records: list[Record]) -> Path:
    """Write the records, and stacks beside profiles."""
    for number, record in enumerate(records):
        write(folder / f"{record.run_id}.json", record)
        for found in record.findings:
            for name in found.files:
                (folder / f"{record.run_id}.{name}").write_text(json.dumps(speedscope(1.0 + number)))
    return folder


def everything() -> list[Record]:
    sweeps = [scaled(), tuned(), soaked(), budgeted()]
    return [*history(), compared(), trained(), *sweeps, profiled(1), profiled(2)]
