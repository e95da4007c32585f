"""What a search for settings found: every combination that was tried, the winner, and what it learns."""

from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from hotloop.core.record.plain import Amount, Count
from hotloop.core.record.sweep import Refused

Learning = Literal["worse", "as well", "better", "cannot tell"]

LEARNING_BAND = 0.05
"""Of what the present settings learn, that others may learn less and still learn as well."""

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
    parts: dict[str, Amount] = field(default_factory=dict)
    """The ns of an env-step in each function that the user named."""
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
    untrained: tuple[float, ...] = ()
    """The mean return of each seed before anything was learnt; empty in records that do not know it."""
    band: Amount = LEARNING_BAND

    @property
    def learned(self) -> float:
        """What the present settings have learnt: their return beyond that of the same policy untrained.

        Where that is not known their return itself, which says as much only where 0 means nothing.
        """
        if not self.untrained:
            return abs(fmean(self.present))
        return fmean(self.present) - fmean(self.untrained)

    @property
    def margin(self) -> float:
        """The return that may be lost; nothing where nothing was learnt that could be kept."""
        return self.band * max(self.learned, 0.0)

    @property
    def outcome(self) -> Learning:
        """Worse or better by the whole interval; as well where it ends within the margin below."""
        if self.low > -self.margin:
            return "better" if self.low > self.margin else "as well"
        return "worse" if self.high < -self.margin else "cannot tell"


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
