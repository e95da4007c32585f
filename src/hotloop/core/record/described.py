"""What was measured, what it did and which path it took, as a record states it."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
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
class Instructions:
    """Instructions of an env-step, from two runs of different lengths, so that their start-up cancels."""

    per_env_step: float
    runs: tuple[tuple[int, int], ...]
    """(env-steps, instructions) of each run."""
    isa: str
    """The instruction set that the counting machine offered."""
