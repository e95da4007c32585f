"""What a search for settings found: every combination that was tried, the winner, and what it learns."""

from dataclasses import dataclass

from hotloop.core.record.plain import Amount, Count
from hotloop.core.record.sweep import Refused

TRAIN, BENCH = "hotloop train", "hotloop bench"
"""What a line to paste begins with: of a training, and of envs alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One combination of settings."""

    at: dict[str, str]
    """Axis to value."""
    speeds: tuple[Amount, ...]
    """Env-steps a second, one a round, of all rungs that it was in."""
    median: Amount
    low: Amount | None
    high: Amount | None
    """Of the median; None where the rounds are too few."""
    rungs: Count
    """How far it came: each rung keeps half."""
    rss_bytes: Amount
    latency_ns: Amount
    """Of one update of a training, or of one call of a batch."""
    best: bool = False
    """Whether no other is better in one of speed, memory and latency, and as good in the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """What the present settings and the winner have learnt after as many env-steps, seed by seed."""

    env_steps: Count
    present: tuple[float, ...]
    winner: tuple[float, ...]
    """The mean return of each seed."""
    difference: float
    """Winner less present, the mean over the seeds."""
    low: float
    high: float
    """Its 95% interval."""

    @property
    def worse(self) -> bool:
        return self.high < 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """All of it."""

    axes: dict[str, tuple[str, ...]]
    present: str
    """The settings that it began with, as typed."""
    tried: tuple[Tried, ...]
    skipped: tuple[Refused, ...]
    winner: dict[str, str]
    """Axis to value."""
    words: str
    """The winner's line to paste."""
    kept: bool
    """Whether the present settings stay: the winner is they, or was not confirmed to be as fast."""
    floor: Amount | None = None
    """Env-steps a second that this machine can be relied on for, with the settings that are recommended."""
    learnt: Learnt | None = None

    @property
    def is_training(self) -> bool:
        return self.words.startswith(TRAIN)
