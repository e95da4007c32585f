"""What a soak found: curves over its time, and how steeply each goes up or down."""

from dataclasses import dataclass

from hotloop.core.record.plain import Amount, Count

SPEED = "env_steps_per_s"
"""As it was; what a neighbour does to it is in it."""

SLOWER = "slower"
"""How many times as long a step takes as that of an instance just made, in turns with it; as a logarithm."""

SLOWER_IN = "slower."
"""Before the name of a phase: the same of it."""

RSS_BYTES, HEAP_BYTES, GPU_BYTES = "rss_bytes", "heap_bytes", "gpu_bytes"

OPEN_FILES, RUNNING = "open_files", "threads"

OWN = "own."
"""Before the name of what a process holds: what came to it while the first instance stepped by itself."""

PRINTED = "printed."
"""Before the name of a metric that a program prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """One curve, and its slope with an interval."""

    name: str
    slope: float
    """A minute, in the curve's own unit; robust: the median over all pairs of points."""
    low: float
    high: float
    """99.99%, so that twenty clean soaks are rarely called otherwise."""
    growth: float
    """Over the judged part of the run, by the slope."""
    alarm: bool
    """Whether it surely rises, by more than a trifle, and to the end."""
    by_new: bool = False
    """Whether it rises by what new instances, made and closed, leave behind, and not by steps: no alarm."""
    curve: tuple[tuple[Amount, float], ...]
    """Seconds since the beginning, and the value; as many points as a curve needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Soak:
    """A long run."""

    seconds: Amount
    env_steps: Count
    looks: Count
    """At which everything was read."""
    cut: Count
    """Of them, those at the beginning that are not judged."""
    fresh: Count
    """Instances that were made anew to be stepped in turns with the first one."""
    trends: tuple[Trend, ...]
    ended: str = ""
    """Why it ended before its time; empty where it did not."""
    enough: bool = True
    """Whether there were looks enough to say anything."""

    @property
    def alarms(self) -> tuple[Trend, ...]:
        return tuple(each for each in self.trends if each.alarm)
