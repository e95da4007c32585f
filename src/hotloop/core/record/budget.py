"""A budget as a record keeps it: what was asked for, what was found, and what follows from that."""

from dataclasses import dataclass
from typing import Literal

from hotloop.core.record.plain import Count

Standing = Literal["met", "missed", "cannot tell", "not equal", "expired"]
"""How a run stands to its budget; of one that is not enforced, a miss is told and is no failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value and what it may as well be."""

    value: float
    low: float
    high: float
    samples: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A run held against one budget."""

    name: str
    metric: str
    unit: str
    more_is_better: bool
    limit: float | None
    """Absolute, in the unit."""
    max_change: float | None
    """For the worse, as a share."""
    against: str | None
    """What a change is counted from, as it was found: a commit with its hash, or a baseline."""
    reason: str
    owner: str
    expires: str | None
    enforced: bool
    value: Estimate | None
    """In the unit."""
    change: Estimate | None = None
    """Value over that of the baseline, less 1."""
    standing: Standing
    why: str
    runs: Count = 1
    """How often all of it was measured: a miss is seen twice before it is one."""
    tighter: str | None = None
    """The line that would hold what was gained, where a gain is beyond noise."""

    @property
    def bound(self) -> float | None:
        """What the value or the change is held against; a change for the worse has its sign."""
        if self.limit is not None or self.max_change is None:
            return self.limit
        return -self.max_change if self.more_is_better else self.max_change

    @property
    def distance(self) -> float | None:
        """How far the value is from an absolute limit, as a share of it; below 0 is short of it."""
        if self.limit is None or not self.limit or self.value is None:
            return None
        apart = self.value.value / self.limit - 1
        return apart if self.more_is_better else -apart
