"""What held a run against a limit: a budget of a gate, and the trends of a soak."""

from dataclasses import dataclass
from typing import Literal

from hotloop.core.record.codec import Amount, Count

# How a run stands to its budget; of one that is not enforced, a miss is told and is no failure.
Standing = Literal["met", "missed", "cannot tell", "not equal", "expired"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value and what it may as well be."""

    value: float
    low: float
    high: float
    samples: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetResult:
    """A run held against one budget."""

    name: str
    metric: str
    unit: str
    more_is_better: bool
    limit: float | None  # Absolute, in the unit
    max_change: float | None  # For the worse, as a share
    # What a change is counted from, as it was found: a commit with its hash, or a baseline.
    against: str | None
    reason: str
    owner: str
    expires: str | None
    enforced: bool
    value: Estimate | None  # In the unit
    change: Estimate | None = None  # Value over that of the baseline, less 1
    standing: Standing
    why: str
    runs: Count = 1  # How often all of it was measured: a miss is seen twice before it is one
    tighter: str | None = None  # The line that would hold what was gained, where a gain is beyond noise

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


SPEED = "env_steps_per_s"  # As it was; what a neighbour does to it is in it

# How many times as long a step takes as that of an instance just made, in turns with it; as a logarithm.
SLOWER = "slower"

SLOWER_IN = "slower."  # Before the name of a phase: the same of it

RSS_BYTES, HEAP_BYTES, GPU_BYTES = "rss_bytes", "heap_bytes", "gpu_bytes"

OPEN_FILES, RUNNING = "open_files", "threads"

# Before the name of what a process holds: what came to it while the first instance stepped by itself.
OWN = "own."

PRINTED = "printed."  # Before the name of a metric that a program prints


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """One curve, and its slope with an interval."""

    name: str
    slope: float  # A minute, in the curve's own unit; robust: the median over all pairs of points
    low: float
    high: float  # 99.99%, so that twenty clean soaks are rarely called otherwise
    growth: float  # Over the judged part of the run, by the slope
    alarm: bool  # Whether it surely rises, by more than a trifle, and to the end
    # Whether it rises by what new instances, made and closed, leave behind, and not by steps: no alarm.
    by_new: bool = False
    # Seconds since the beginning, and the value; as many points as a curve needs.
    curve: tuple[tuple[Amount, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Soak:
    """A long run."""

    seconds: Amount
    env_steps: Count
    looks: Count  # At which everything was read
    cut: Count  # Of them, those at the beginning that are not judged
    fresh: Count  # Instances that were made anew to be stepped in turns with the first one
    trends: tuple[Trend, ...]
    ended: str = ""  # Why it ended before its time; empty where it did not
    enough: bool = True  # Whether there were looks enough to say anything

    @property
    def alarms(self) -> tuple[Trend, ...]:
        return tuple(each for each in self.trends if each.alarm)
