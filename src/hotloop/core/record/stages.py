"""Looks at a run from update to update, and the stages of a run that has several phases."""

from dataclasses import dataclass

from hotloop.core.record.plain import Count
from hotloop.core.record.profile import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """What a run did between one look and the next, in order."""

    wall_ns: tuple[Count, ...] = ()
    updates: tuple[Count, ...] = ()
    env_steps: tuple[Count, ...] = ()
    rss_bytes: tuple[Count, ...] = ()
    """Memory at the end of each."""
    queued_ns: tuple[Count, ...] = ()
    """What the loop's thread waited for a core; 0 if the system does not say."""
    stages: tuple[Count, ...] = ()
    """The number of the stage that each belongs to; empty if the run is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stretch of a run whose rows and speeds are a population of their own, called a phase of the run."""

    name: str
    is_declared: bool
    """Whether the loop named it; otherwise it lies between two change points."""
    env_steps: Count
    updates: Count
    phases: tuple[Phase, ...]
    """The rows of its time; shares are of its own wall."""
    unaccounted_ns: int
