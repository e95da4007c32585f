"""Logs: what spans and batches noted one by one, read onto the clock that Python reads."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core import spans
from hotloop.envs.batch import Batch

Numbers = NDArray[np.int64]
HEAD = 4
"""Columns of a batch's row before its phases."""


class Timeline:
    """From ticks to the nanoseconds of `now_ns`, by two moments as far apart as the run allows."""

    def __init__(self) -> None:
        self._first = self._last = spans.moment()

    def read_clock(self) -> None:
        """Take the present moment as the nearer one."""
        self._last = spans.moment()

    @property
    def _ns_per_tick(self) -> float:
        ticks, ns = (late - early for late, early in zip(self._last, self._first, strict=True))
        return ns / ticks if ticks else 1.0

    def ns(self, ticks: Numbers) -> Numbers:
        """When it was."""
        return self._last[1] + self.duration_ns(ticks - self._last[0])

    def duration_ns(self, ticks: Numbers) -> Numbers:
        """How long it took."""
        rounded: Numbers = np.rint(ticks * self._ns_per_tick).astype(np.int64)
        return rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Spans and marks one by one, in the order they ended; all times in ns."""

    paths: tuple[str, ...]
    """Of each place, names from the outermost inwards, joined by `/`."""
    threads: Numbers
    """Of each place: 0 is the first thread that was in a span."""
    place: Numbers
    begin: Numbers
    end: Numbers
    own: Numbers
    """The time charged to it: of a mark, less than from begin to end where other spans are inside."""
    missed: int

    def chosen(self, which: Any) -> "Events":
        """Some of them, as an index of an array says which."""
        return replace(
            self,
            **{name: getattr(self, name)[which] for name in ("place", "begin", "end", "own")},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Laps:
    """Turns of a loop, back to back."""

    begin: Numbers
    end: Numbers
    given: Numbers


def read_spans(timeline: Timeline) -> tuple[Events, Laps]:
    """Take what was logged since spans were enabled."""
    places, rows, missed = spans.take()
    place, begin, end, own = np.frombuffer(rows, np.int64).reshape(-1, 4).T
    paths: list[str] = []
    for _, parent, name in places:
        paths.append(name if parent < 0 else f"{paths[parent]}/{name}")
    begin_ns, end_ns, lap = timeline.ns(begin), timeline.ns(end), place < 0
    whole = end - begin == own
    own_ns = np.where(whole, end_ns - begin_ns, timeline.duration_ns(own))
    events = Events(
        paths=tuple(paths),
        threads=np.array([thread for thread, _, _ in places], np.int64),
        place=place,
        begin=begin_ns,
        end=end_ns,
        own=own_ns,
        missed=missed,
    )
    return events.chosen(~lap), Laps(begin=begin_ns[lap], end=end_ns[lap], given=own[lap])


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Steps of a batch one by one; all times in ns."""

    names: tuple[str, ...]
    begin: Numbers
    end: Numbers
    ended: Numbers
    """Episodes that ended in each."""
    first_env: Numbers
    """Of those; -1 where none did."""
    phases: Numbers
    """[steps, workers, phases]"""

    @property
    def workers(self) -> int:
        return int(self.phases.shape[1])

    def chosen(self, which: Any) -> "Steps":
        fields = ("begin", "end", "ended", "first_env", "phases")
        return replace(self, **{name: getattr(self, name)[which] for name in fields})


def read_steps(batch: Batch, timeline: Timeline) -> Steps:
    """Take what a batch has logged; the twins' clock is Python's already."""
    rows, native = batch.take_log(), batch.spec.impl == "native"
    times = timeline.ns(rows[:, :2]) if native else rows[:, :2]
    phases = timeline.duration_ns(rows[:, HEAD:]) if native else rows[:, HEAD:]
    names = batch.spec.phases
    return Steps(
        names=names,
        begin=times[:, 0],
        end=times[:, 1],
        ended=rows[:, 2],
        first_env=rows[:, 3],
        phases=phases.reshape(len(rows), -1, len(names)),
    )
