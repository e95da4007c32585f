"""A record as a profile would have made it, with round numbers that can be checked by hand."""

from dataclasses import replace
from typing import Any

from hotloop.core.record import Method, Record
from hotloop.core.record.metadata import Described, PathRan, Work
from hotloop.core.record.profile import Overhead, describe_times
from hotloop.lab.profile.calls import step_times
from hotloop.stats.summary import with_metrics

MACHINE: dict[str, Any] = {
    "fingerprint": "0123456789ab",
    "cpu": "Example CPU",
    "cores": 4,
    "usable_cores": 4,
    "load": 0.1,
    "steal_share": 0.0,
    "gpu": None,
    "limits": {"cpus": None, "memory_bytes": None},
}

TIMES = {"reset": 40, "actions": 200, "observations": 1_600, "rewards": 10, "autoreset": 50, "step": 2_000}
"""Of 10 env-steps with 2 agents each; 100 ns of the step are in no phase."""

TIMING = step_times(TIMES, wall_ns=2_500, env_steps=10, threads=1)

PROFILE = with_metrics(
    Record(
        run_id="20250102-030405-0123abcd-grid-toy",
        kind="profile",
        created="2025-01-02T03:04:05+00:00",
        target=Described(
            name="grid/toy",
            world="grid",
            impl="native",
            device="cpu",
            params={"agents": 2},
            workload_hash="0123456789ab",
            variant={"num_envs": 5, "map": "a|b"},
        ),
        machine=MACHINE,
        code={"version": "1", "commit": "0123abcd", "dirty": False, "compiler": "GNU 12", "flags": "-O3"},
        method=Method(
            rounds=8,
            iterations=10,
            warmup=5,
            threads=1,
            order="ABBA",
            clock="perf_counter_ns",
            policy="random",
        ),
        work=Work(env_steps=10, agent_steps=20),
        path=PathRan(requested="auto", ran={"native": 1.0}),
        values={
            "env_steps_per_s": (4.0e6, 4.1e6, 3.9e6, 4.0e6, 4.1e6, 3.9e6, 4.0e6, 4.0e6),
            "agent_steps_per_s": (8.0e6, 8.2e6, 7.8e6, 8.0e6, 8.2e6, 7.8e6, 8.0e6, 8.0e6),
        },
        phases=describe_times(TIMING),
        unaccounted_ns=TIMING["step"].self_ns,
        overhead=Overhead(ratio=1.012, ci95=(1.001, 1.02), mark_ns=None),
    )
)

BENCH = replace(PROFILE, kind="bench", phases=(), unaccounted_ns=None, overhead=None)


def bench_with(values: list[float], **more: Any) -> Record:
    """A bench record of these rounds."""
    agents = [2 * value for value in values]
    raw = {"env_steps_per_s": tuple(values), "agent_steps_per_s": tuple(agents)}
    return with_metrics(replace(BENCH, values=raw, **more))
