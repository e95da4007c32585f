"""Sides: what takes turns in a comparison, and counts its work."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol


class Turn(NamedTuple):
    """One timed stretch of one side."""

    ns: int
    env_steps: int

    @property
    def ns_per_env_step(self) -> float:
        return self.ns / self.env_steps


class Side(Protocol):
    """Something that can run a round of n env-steps, or more by a part of a call, and count its work."""

    name: str

    def turn(self, env_steps: int) -> Turn:
        """Run and time that many, after a short stretch that nobody times."""

    def counters(self) -> Mapping[str, int]: ...

    def phase_totals(self) -> Mapping[str, int]:
        """Nanoseconds in each phase since the beginning; empty where nothing is timed."""

    def close(self) -> None: ...
