"""A trace: stretches of time by thread, nested as the code was."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

MAIN = 0  # The track of the thread that plays


class Slice(NamedTuple):
    """A stretch of time of one track."""

    name: str
    begin_ns: int
    end_ns: int
    track: int
    category: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Sampled steps, on the clock of `now_ns`."""

    tracks: Mapping[int, str]  # What each is called
    slices: tuple[Slice, ...]  # By track and time, parents before what is inside them
    slow: Mapping[int, int]  # The rank of a slow step to when it began
    about: Mapping[str, Any]
