"""The record: everything one run found out, as JSON; reports and judgements read nothing else."""

import json
import re
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self

from hotloop.core.errors import InputError
from hotloop.core.files import free_path, write_new
from hotloop.core.finding import Finding
from hotloop.core.notices import Notice
from hotloop.core.plain import ForeignError, from_plain
from hotloop.core.validation import Validation

__all__ = ["OUTCOME", "SCHEMA", "Comparison", "Goal", "Instructions", "Interval", "Method", "Metric"]
__all__ += ["Outcome", "Overhead", "PathRan", "Phase", "PhaseRatio", "Ratio", "Record", "Resources"]
__all__ += ["Side", "Target", "Validation", "Work", "free_path", "read", "run_id", "write"]

SCHEMA = 1
METHOD = 1
"""The version of how things are measured; results of different versions are unlike."""
OUTCOME = "outcome."
"""What the names of values begin with that say what episodes came to by a world's own measures."""

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What was measured."""

    name: str
    """`grid/toy`, a Gymnasium id or `module:callable`."""
    world: str | None
    """None where it is not one of ours."""
    impl: str
    device: str
    params: dict[str, Any]
    workload_hash: str
    variant: dict[str, Any]


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
    version: int = METHOD


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What was done in the measured rounds, counted where it was done."""

    env_steps: int = 0
    agent_steps: int = 0
    resets: int = 0
    decisions: int = 0
    updates: int = 0
    tokens: int = 0
    rows: int = 0
    coverage: dict[str, int] = field(default_factory=dict)
    """Mechanic to how often it fired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRan:
    """Which implementation was asked for and which ran."""

    requested: str
    ran: dict[str, float] = field(default_factory=dict)
    """Implementation to its share of the steps."""
    counters: dict[str, int] = field(default_factory=dict)


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
class Phase:
    """One row of a profile."""

    path: str
    """Names from the outermost inwards, joined by `/`."""
    calls: int
    total_ns: int
    mean_ns: float
    p50_ns: float | None = None
    p95_ns: float | None = None
    p99_ns: float | None = None
    share: float
    """Of the wall time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """What the instrument cost: time with it over time without."""

    ratio: float
    ci95: Interval | None
    mark_ns: float | None


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
class Instructions:
    """Instructions of an env-step, from two runs of different lengths, so that their start-up cancels."""

    per_env_step: float
    runs: tuple[tuple[int, int], ...]
    """(env-steps, instructions) of each run."""
    isa: str
    """The instruction set that the counting machine offered."""


Outcome = Literal["faster", "slower", "same", "cannot tell"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """How many times as long A took as B: above 1 means that B is faster."""

    estimate: float
    low: float
    high: float
    pairs: int
    """Rounds that measured both sides; 0 where the sides were not measured in turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a comparison, as far as its own record would say it."""

    name: str
    """The target and its keys, or a commit."""
    run_id: str | None
    """Of the record it was read from; None where it was measured in the comparison itself."""
    target: Target
    code: dict[str, Any]
    work: Work
    path: PathRan


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRatio:
    """One phase on both sides."""

    phase: str
    ratio: Ratio
    """With an interval that holds for all phases together."""
    share: float
    """Of A's wall time."""
    worth: float
    """How many times as fast the whole would be by this phase's change alone."""
    control: bool = False
    """Whether the change cannot touch it, so that it should not have moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Side A, the baseline, against B, which is what the record itself is about."""

    a: Side
    b: Side
    unlike: tuple[str, ...] = ()
    """What differs beyond the variant; more than nothing only where that was allowed."""
    band: float
    """Changes smaller than this are called the same."""
    ratio: Ratio | None
    noise: Ratio | None = None
    """A against A, measured beside it."""
    second: Ratio | None = None
    """The run that had to agree before anything was called slower."""
    visible: float | None = None
    """The smallest change that would have been seen."""
    more_pairs: int | None = None
    """How many more would settle what could not be told; None where none would."""
    phases: tuple[PhaseRatio, ...] = ()
    instructions: float | None = None
    """Instructions of an env-step, B over A."""
    difference: str | None = None
    """Where the two sides first answered differently."""
    outcome: Outcome
    why: str


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
    target: Target
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
