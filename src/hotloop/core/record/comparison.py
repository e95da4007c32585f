"""A comparison as a record keeps it: two sides, their ratio, and what follows from it."""

from dataclasses import dataclass
from typing import Literal

from hotloop.core.record.described import Code, Described, PathRan, Work
from hotloop.core.record.plain import Amount, Count

A, B = "a", "b"
"""The baseline, and what is compared with it: what the names of their values begin with."""

RETURNS = ("a.return", "b.return")
"""One value an episode; the episodes of both sides have the same seeds."""

AFTER = "return_after_env_steps"

Outcome = Literal["faster", "slower", "same", "cannot tell"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """How many times as long A took as B: above 1 means that B is faster."""

    estimate: Amount
    low: Amount
    high: Amount
    pairs: Count
    """Rounds that measured both sides; 0 where the sides were not measured in turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One side of a comparison, as far as its own record would say it."""

    name: str
    """The target and its keys, or a commit."""
    run_id: str | None
    """Of the record it was read from; None where it was measured in the comparison itself."""
    target: Described
    code: Code
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

    a: ComparedSide
    b: ComparedSide
    unlike: tuple[str, ...] = ()
    """What differs beyond the variant; more than nothing only where that was allowed."""
    band: Amount
    """Changes smaller than this are called the same."""
    ratio: Ratio | None
    noise: Ratio | None = None
    """A against A, measured beside it."""
    second: Ratio | None = None
    """The run that had to agree before anything was called faster or slower."""
    others: tuple[Ratio, ...] = ()
    """Each instance of A against each of B, in the first run and in the second: they had to agree too."""
    cpu: Ratio | None = None
    """By CPU time instead of wall time."""
    per_work: Ratio | None = None
    """For as much work, where the sides did different work."""
    visible: float | None = None
    """The smallest change that would have been seen."""
    more_pairs: Count | None = None
    """How many more would settle what could not be told; None where none would."""
    phases: tuple[PhaseRatio, ...] = ()
    instructions: float | None = None
    """Instructions of an env-step, B over A."""
    difference: str | None = None
    """Where the two sides first answered differently."""
    outcome: Outcome
    why: str
