"""A result of another tool's as a record: how often a second it ran."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hotloop.core.record.metadata import Code, Described, Machine, PathRan, Project, Work
from hotloop.core.record.record import RUNS_PER_S, Method, Record, new_record
from hotloop.stats.summary import with_metrics

NOWHERE = "unknown"
"""Where a file does not say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One benchmark of another tool's."""

    tool: str
    name: str
    seconds: Sequence[float]
    """Of each repetition."""
    when: datetime
    cpu: str = NOWHERE
    cores: int | None = None
    machine: Any = None
    """All that the file says of it: two files that say the same are of one machine."""
    commit: str = NOWHERE
    dirty: bool = False
    project: str = ""
    keys: dict[str, Any] = field(default_factory=dict)


def record_of(result: Result) -> Record:
    """A record whose rounds are the repetitions, more runs a second being better."""
    seconds = [each for each in result.seconds if each > 0]
    name = f"{result.tool}:{result.name}"
    method = Method(
        rounds=len(seconds),
        iterations=1,
        warmup=0,
        threads=1,
        order="single",
        clock=result.tool,
        policy="none",
        headline=RUNS_PER_S,
    )
    return with_metrics(
        new_record(
            "bench",
            now=result.when,
            code=code_of(result),
            name=" ".join([name, *map(str, result.keys.values())]),
            target=Described(
                name=name,
                world=None,
                impl="foreign",
                device="cpu",
                params=dict(result.keys),
                workload_hash=digest([name, result.keys]),
                variant={},
                keys=dict(result.keys),
            ),
            machine=machine_of(result),
            method=method,
            work=Work(runs=len(seconds)),
            path=PathRan(requested="foreign"),
            values={RUNS_PER_S: [1.0 / each for each in seconds]},
        )
    )


def machine_of(result: Result) -> Machine:
    return Machine(
        fingerprint=digest(result.machine or result.cpu),
        cpu=result.cpu,
        cores=result.cores,
        gpu=None,
        limits={"cpus": None, "memory_bytes": None},
    )


def code_of(result: Result) -> Code:
    project = Project(commit=result.commit, dirty=result.dirty, root=result.project or NOWHERE)
    return Code(
        version=result.tool,
        commit=result.commit,
        dirty=result.dirty,
        compiler=None,
        flags=None,
        project=project,
    )


def digest(value: Any) -> str:
    """Twelve hex digits that equal values share."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:12]
