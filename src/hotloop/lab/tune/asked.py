"""What a search for settings is to do."""

from dataclasses import dataclass

from hotloop.core.errors import InputError
from hotloop.core.record.sweep import LEARNING_BAND

FIRST_ROUNDS = 6
"""Of the first rung: the fewest that have an interval; each rung has twice as many as the one before."""

SEEDS = 6
"""Trainings of each side in the learning check: the fewest differences with an interval."""

CONFIRM_NS, CONFIRM_TRAINING_NS = 30_000_000_000, 120_000_000_000
"""What the confirmation takes: a turn of a training is an update at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How settings are searched for."""

    rounds: int = FIRST_ROUNDS
    learn_steps: int = 0
    """Env-steps of each training of the learning check; 0 leaves it out."""
    seeds: int = SEEDS
    band: float = LEARNING_BAND
    """Of what the present settings learn, that a winner may learn less and still learn as well."""
    confirm_ns: int | None = None
    """What the confirmation may take, and as much again for faster or slower; None is the usual."""
    at_most_s: float | None = None
    """Of search and confirmation together; None is without end."""
    metric: str | None = None
    """What programs print that is judged, as `NAME=REGEX`; None judges whole runs."""
    less_is_better: bool = False
    """Whether that metric is a time."""
    learning_metric: str | None = None
    """What programs print of what they learnt, as `NAME=REGEX`; None leaves the learning check out."""

    def confirming_ns(self, *, training: bool) -> int:
        return self.confirm_ns or (CONFIRM_TRAINING_NS if training else CONFIRM_NS)

    def __post_init__(self) -> None:
        if self.confirm_ns is not None and not 0 < self.confirm_ns < 10**15:
            raise InputError(f"a confirmation of {self.confirm_ns / 1e9:g} s: expected more than 0")
        if not 0 <= self.band < 1:
            raise InputError(f"a band of {self.band:.0%} of what is learnt: expected 0 to less than 100%")
        if self.rounds < 1 or self.seeds < 1 or self.learn_steps < 0:
            raise InputError("rounds and seeds are at least 1, and steps to learn at least 0")
