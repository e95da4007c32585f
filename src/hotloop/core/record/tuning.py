"""What a search for settings found: every combination that was tried, the winner, and what it learns."""

from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from hotloop.core.record.plain import Amount, Count
from hotloop.core.record.sweep import Refused

Learning = Literal["worse", "as well", "better", "cannot tell"]

LEARNING_BAND = 0.05
"""Of the return that the present settings come to: less of a difference is none."""

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
    def outcome(self) -> Learning:
        """Worse or better by the whole interval; as well where it ends within the band below."""
        band = LEARNING_BAND * abs(fmean(self.present))
        if self.low > -band:
            return "better" if self.low > band else "as well"
        return "worse" if self.high < -band else "cannot tell"


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
    """Whether the present settings stay: in turns with them the winner was slower, or it learns less."""
    floor: Amount | None = None
    """Env-steps a second that this machine can be relied on for, with the settings that are recommended."""
    learnt: Learnt | None = None

    @property
    def is_training(self) -> bool:
        return self.words.startswith(TRAIN)
