"""What a record says of its run: target, machine, code, work and the path that ran."""

from dataclasses import dataclass, field
from typing import Any, NotRequired, TypedDict

from hotloop.core.record.codec import Amount, Count


class Gpu(TypedDict):
    """The first GPU, and how many there are of its kind."""

    name: str
    count: Count
    memory_bytes: Count | None
    driver: str


class ContainerLimits(TypedDict):
    """What a container may use; None where nothing limits it."""

    cpus: Amount | None
    memory_bytes: Count | None


class Machine(TypedDict):
    """The machine a number was measured on; what could not be found out is None, empty or left out."""

    fingerprint: str  # Twelve hex digits that two machines share where their numbers can be compared
    cpu: str
    architecture: NotRequired[str]
    cores: Count | None
    memory_bytes: NotRequired[Count]
    isa: NotRequired[list[str]]
    gpu: Gpu | None
    limits: ContainerLimits
    kernel: NotRequired[str]
    python: NotRequired[str]
    usable_cores: NotRequired[Count | None]
    load: NotRequired[Amount | None]
    governor: NotRequired[str | None]
    steal_share: NotRequired[Amount | None]
    clocksource: NotRequired[str | None]


class ProjectCode(TypedDict):
    """The repository that a user's target is in."""

    commit: str
    dirty: bool
    root: str  # The name of its folder
    # Its files that were loaded, each with a hash, by their names within the target's folder.
    sources: NotRequired[dict[str, str]]


class Ancestry(TypedDict):
    """Where a commit stands in its project."""

    position: Count  # How many commits there are up to it, along first parents
    committed: str  # ISO 8601
    subject: str


class CodeInfo(TypedDict):
    """The code that ran: Hotloop's, and the target's project where that is another."""

    version: str
    commit: str
    dirty: bool
    compiler: str | None
    flags: str | None
    project: NotRequired[ProjectCode]
    ancestry: NotRequired[Ancestry]  # Of the own commit, if it was measured as one of several


def own_commit(code: CodeInfo) -> tuple[str, bool]:
    """The commit that a number is of, the target's own before Hotloop's, and whether it was changed since."""
    of = code.get("project", code)
    return of["commit"], of["dirty"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What was measured."""

    name: str  # `grid/toy`, a Gymnasium id or `module:callable`
    world: str | None  # None where it is not one of ours
    impl: str
    device: str
    params: dict[str, Any]
    workload_hash: str
    variant: dict[str, Any]
    # Those that were given: by them it differs from what its bare name means.
    keys: dict[str, Any] = field(default_factory=dict)
    # Observation bytes per env-step; None if unknown.
    observation_bytes: Count | None = None

    @property
    def words(self) -> str:
        """Its name and its keys, as they would be typed."""
        return " ".join([self.name, *(f"{key}={value}" for key, value in self.keys.items())])


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What was done in the measured rounds, counted where it was done."""

    env_steps: Count = 0
    agent_steps: Count = 0
    resets: Count = 0
    decisions: Count = 0
    updates: Count = 0
    tokens: Count = 0
    rows: Count = 0
    runs: Count = 0  # Of a whole program, each to its end
    coverage: dict[str, Count] = field(default_factory=dict)  # Mechanic to how often it fired


# What the names of counters begin with that say how a log was written, and not how much was done.
LOG_COUNTERS = "log."

LOST_STEPS, LOG_BYTES = f"{LOG_COUNTERS}lost_steps", f"{LOG_COUNTERS}bytes"
# Env-steps that are in no log; what its file has grown by, pages written, and how often a run waited.
LOG_WRITTEN, LOG_WAITS = f"{LOG_COUNTERS}pages", f"{LOG_COUNTERS}waits"


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRan:
    """Which implementation was asked for and which ran."""

    requested: str
    ran: dict[str, Amount] = field(default_factory=dict)  # Implementation to its share of the steps
    counters: dict[str, Count] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instructions:
    """Instructions of an env-step, from two runs of different lengths, so that their start-up cancels."""

    per_env_step: Amount
    runs: tuple[tuple[Count, Count], tuple[Count, Count]]  # (env-steps, instructions) of each run
    isa: str  # The instruction set that the counting machine offered
