"""Subjects: what an experiment runs, whoever wrote it."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hotloop.core.notices import Notice
from hotloop.core.record import Described
from hotloop.envs.native import Build


class SubjectSpec(Protocol):
    """What a subject says about itself."""

    @property
    def name(self) -> str:
        """The target it was opened as."""

    @property
    def impl(self) -> str:
        """What runs: `native`, `reference` or `foreign`."""

    @property
    def requested(self) -> str:
        """The implementation that was asked for."""

    @property
    def num_envs(self) -> int: ...

    @property
    def agents(self) -> int:
        """Of each env."""

    @property
    def threads(self) -> int: ...

    @property
    def seed(self) -> int: ...

    @property
    def build(self) -> Build | None: ...

    @property
    def notices(self) -> tuple[Notice, ...]: ...

    @property
    def decided_by(self) -> Mapping[str, str]: ...

    @property
    def described(self) -> Described:
        """What a record says of it, split into what changes results and what must not."""


class Subject(Protocol):
    """Envs behind one call, stepped through actions made beforehand, that count their own work."""

    @property
    def spec(self) -> SubjectSpec: ...

    def reset(self) -> None:
        """Begin an episode in every env, from the seed of the target."""

    def draw(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        """Random actions for a number of calls, made while no clock runs."""

    def step(self, actions: Any) -> None:
        """Step every env once; one whose episode ended begins its next."""

    @property
    def counters(self) -> dict[str, int]:
        """What ran and how much, counted by the code that did it; `env_steps` is always there."""

    def answers(self) -> Mapping[str, NDArray[Any]]:
        """All that the last call gave back, an array a field, its first axis the envs."""

    def phase_totals(self) -> dict[str, int]:
        """Nanoseconds in each phase since the beginning; empty where nothing is timed."""

    def close(self) -> None: ...
