"""What two trainings have learnt after as many steps, beside how fast they are."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from hotloop.core.record import Record
from hotloop.lab.progress import Progress
from hotloop.stats.metrics import with_metrics

RETURNS = ("a.return", "b.return")
"""One value an episode; the episodes of both sides have the same seeds."""
AFTER = "return_after_env_steps"


class Learner(Protocol):
    """A training that can be run anew."""

    def returns_after(self, env_steps: int) -> Sequence[float]: ...


def with_returns(record: Record, a: Learner, b: Learner, env_steps: int, progress: Progress) -> Record:
    """Add the returns of both sides after so many env-steps."""
    values: dict[str, tuple[float, ...]] = {AFTER: (float(env_steps),)}
    for done, (name, side) in enumerate(zip(RETURNS, (a, b), strict=True), 1):
        values[name] = tuple(side.returns_after(env_steps))
        progress(done, 2)
    return with_metrics(replace(record, values=record.values | values))
