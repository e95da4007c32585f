"""Goals: the speed that was asked for, beside what a run can be relied on for."""

from dataclasses import dataclass

from hotloop.core.errors import InputError
from hotloop.core.record import Goal, Record
from hotloop.lab.judge import HEADLINE
from hotloop.stats.sign import sign_interval

ONE_MISS_IN = 10
"""Of the interval whose lower end is the floor: 5% on that side, which takes five rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A speed to be reached."""

    env_steps_per_s: float
    enforced: bool = False
    """Whether missing it is a failure, and not only said."""

    def __post_init__(self) -> None:
        if not self.env_steps_per_s > 0:
            raise InputError(f"a target of {self.env_steps_per_s:g} steps a second: expected more than 0")


def goal_of(record: Record, wanted: Wanted | None) -> Goal | None:
    """Hold a finished run against what was wanted: its median has to reach it.

    The floor is the lower bound of the median with 95% on its side: a target for this machine that the
    same code does not miss by chance.
    """
    values = record.values[HEADLINE]
    if wanted is None or record.partial:
        return None
    around = sign_interval(values, ONE_MISS_IN)
    return Goal(
        env_steps_per_s=wanted.env_steps_per_s,
        floor=around[0] if around else None,
        enforced=wanted.enforced,
        met=record.metrics[HEADLINE].median >= wanted.env_steps_per_s,
    )
