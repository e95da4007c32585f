"""The record: everything one run found out, as JSON; reports and judgements read nothing else."""

import json
import re
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from hotloop.core.errors import InputError
from hotloop.core.files import write_new
from hotloop.core.notices import Notice
from hotloop.core.record.comparison import Comparison
from hotloop.core.record.described import Described, Instructions, PathRan, Work
from hotloop.core.record.findings import Finding
from hotloop.core.record.plain import ForeignError, Interval, from_plain
from hotloop.core.record.profile import Again, Overhead, Phase, Slow
from hotloop.core.record.validation import Validation

SCHEMA = 1

METHOD = 1
"""The version of how things are measured; results of different versions are unlike."""

CPU_SHARE = "cpu_share"
"""The values that say what CPU time each round took over its wall time; 2.0 is two cores busy."""

OUTCOME = "outcome."
"""What the names of values begin with that say what episodes came to by a world's own measures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How it was measured."""

    rounds: int
    iterations: int
    """Env-steps in a round; one batch call makes num_envs of them."""
    warmup: int
    """Env-steps before the first round, thrown away."""
    threads: int
    order: str
    """In which the sides of a round were measured; `single` where there was one."""
    clock: str
    policy: str
    garbage: str = "between"
    """When it was collected: `between` rounds, outside the clock, or as in `life`, whenever Python would."""
    version: int = METHOD


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """Statistics of one metric over the rounds, derived from its raw values."""

    median: float
    mean: float
    cv: float | None
    """Sample standard deviation over mean; None where that is undefined."""
    ci95: Interval | None
    """Of the median; None where the rounds are too few."""
    min: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What the run used."""

    rss_peak_bytes: int | None = None
    rss_slope: float | None = None
    """Bytes a second."""
    cpu_share: float | None = None
    """CPU time over wall time; 2.0 is two cores busy."""
    gpu: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The speed that was asked for, and how far it is."""

    env_steps_per_s: float
    floor: float | None
    """The lower bound of the speed's interval: what this machine can be relied on for."""
    enforced: bool
    met: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One run. Raw values are kept; `hotloop.stats.metrics` derives the metrics from them."""

    schema: int = SCHEMA
    run_id: str
    kind: str
    """The command that made it: bench, profile, compare, ..."""
    created: str
    """ISO 8601, UTC."""
    label: str | None = None
    partial: bool = False
    """Interrupted before its last round."""
    target: Described
    machine: dict[str, Any]
    code: dict[str, Any]
    method: Method
    work: Work
    path: PathRan
    values: dict[str, tuple[float, ...]]
    """Metric to one raw value a round."""
    metrics: dict[str, Metric] = field(default_factory=dict)
    phases: tuple[Phase, ...] = ()
    unaccounted_ns: int | None = None
    overhead: Overhead | None = None
    validation: Validation | None = None
    resources: Resources | None = None
    goal: Goal | None = None
    instructions: Instructions | None = None
    comparisons: tuple[Comparison, ...] = ()
    slow: Slow | None = None
    again: Again | None = None
    findings: tuple[Finding, ...] = ()
    """What probes found, each in a pass of its own."""
    notices: tuple[Notice, ...] = ()
    verdict: str | None = None
    exit_code: int = 0

    def to_json(self) -> str:
        """The record as JSON text, fields in the order of their declaration."""
        return json.dumps(asdict(self), indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild a record; InputError where the text is not one, or is of a newer schema."""
        try:
            plain = json.loads(text)
        except ValueError as error:
            raise InputError(f"not JSON, or cut off: {error}") from None
        schema = plain.get("schema") if isinstance(plain, dict) else None
        if not isinstance(schema, int):
            raise InputError("not a Hotloop record: it has no schema number")
        if schema != SCHEMA:
            raise InputError(
                f"it has schema {schema}, this Hotloop reads {SCHEMA}: use the version that wrote it"
            )
        try:
            return from_plain(cls, plain, "record")
        except ForeignError as error:
            raise InputError(f"not a Hotloop record: {error}") from None


def run_id(now: datetime, commit: str, dirty: bool, target: str) -> str:
    """`<YYYYMMDD-HHMMSS>-<commit>[-dirty]-<target>`, fit for a file name."""
    stamp = now.astimezone(UTC).strftime("%Y%m%d-%H%M%S")
    words = [stamp, commit[:12], *(["dirty"] if dirty else []), re.sub(r"[^\w.-]+", "-", target)]
    return "-".join(words)


def write(path: Path, record: Record) -> None:
    """Write a record whole or not at all; InputError where the path exists (see `free_path`)."""
    write_new(path, record.to_json())


def read(path: Path) -> Record:
    """Read a record; InputError where there is none, or something else."""
    try:
        return Record.from_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a Hotloop record: it is not text") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
