"""A candidate's way to becoming the default, as far as it has come."""

from dataclasses import dataclass

from hotloop.core.record.comparison import Outcome, Ratio
from hotloop.core.record.validation import Difference

STEPS = ("validate at scale", "measure the impact", "make it the default", "remove the old path")


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """All that was compared of one workload."""

    target: str
    keys: dict[str, object]
    """The workload's own values."""
    comparisons: int
    mismatches: int
    runs: int
    difference: Difference | None
    """Of the newest run; a mismatch is open until a later run of the same workload finds none."""
    bundle: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """Where a candidate stands."""

    candidate: str
    reference: str
    configurations: tuple[Configuration, ...]
    wanted: int
    """Comparisons of each target that count as a validation at scale."""
    missing: tuple[str, ...]
    """Targets that have fewer."""
    outcome: Outcome | None
    """Of the candidate against the reference; None where they were not timed."""
    alone: Ratio | None
    """What was replaced, by itself: how many times as long the reference takes."""
    whole: Ratio | None
    """A whole env-step."""
    part: str
    """What was replaced, in words."""
    is_default: bool
    step: int
    """Which of the four is next, from 1; 5 where all are done."""
    why: str
    command: str

    @property
    def comparisons(self) -> int:
        return sum(each.comparisons for each in self.configurations)

    @property
    def mismatches(self) -> int:
        return sum(each.mismatches for each in self.configurations)
