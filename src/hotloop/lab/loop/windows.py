"""The windows of a loop: what was counted in each, what it took, and all of them together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import index

from hotloop.core.errors import InputError
from hotloop.core.time_tree import TimeTree, add

MOST_WINDOWS = 8_192
"""That a run keeps apart; beyond that, neighbours are put together."""

MOST_ROUNDS = 64
"""Whose trees are kept apart: as many as an interval needs, and no more."""

MOST_LOOKS = 256
"""That a run keeps; beyond that, neighbours of one stage are put together."""

UPDATES, STEPS, SAMPLES = "updates", "env_steps", "samples"
"""What is counted."""

Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What was counted in one window, or in several, and the time it took."""

    counts: Counts
    wall_ns: int

    def per_s(self, name: str) -> float:
        return self.counts.get(name, 0) * 1e9 / max(self.wall_ns, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopWindow:
    """One window, as whoever looks on is told of it."""

    name: str
    updates: int
    """Of the run so far."""
    steps: int
    """Of the run so far."""
    counted: Counted
    times: TimeTree

    def values(self) -> dict[str, float]:
        """All of it by name, for logs that others draw: ms of an update, and speeds."""
        counts = self.counted.counts
        turns = max(counts.get(UPDATES, 0), 1)
        speeds = {f"{name}_per_s": self.counted.per_s(name) for name in counts if counts[name]}
        rows = {f"ms_per_update/{row.path}": row.total_ns / 1e6 / turns for row in self.times.rows}
        rest = {"ms_per_update/unaccounted": self.times.unaccounted_ns / 1e6 / turns}
        return {**speeds, "ms_per_update": self.counted.wall_ns / 1e6 / turns, **rows, **rest}


class Windows:
    """All windows of a run, of bounded size however long it is."""

    def __init__(self) -> None:
        self.kept: list[Counted] = []
        """Those in which something was counted."""
        self.times: TimeTree | None = None
        """Of all of them, also where nothing was counted."""
        self.rounds: list[TimeTree] = []
        """Of each, as long as they are few enough to keep apart."""

    def add(self, counted: Counted, times: TimeTree) -> None:
        self.times = add([self.times, times] if self.times else [times])
        if any(counted.counts.values()):
            self.kept.append(counted)
            self.rounds.append(times)
        if len(self.rounds) >= MOST_ROUNDS:
            pairs = zip(self.rounds[::2], self.rounds[1::2], strict=True)
            self.rounds = [each for pair in pairs if (each := add(pair))]
        if len(self.kept) >= MOST_WINDOWS:
            self.kept = [both(*pair) for pair in zip(self.kept[::2], self.kept[1::2], strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLook:
    """What was counted and timed since the look before, all in one stage."""

    counted: Counted
    times: TimeTree
    stage: str
    """The phase that the loop has declared; empty if none."""
    rss_bytes: int
    queued_ns: int = 0
    """What its thread waited for a core."""


def keep_few(looks: list[LoopLook]) -> list[LoopLook]:
    """Return the looks with neighbours put together, if they are too many to keep apart."""
    if len(looks) < MOST_LOOKS:
        return looks
    kept: list[LoopLook] = []
    can_join = False
    for look in looks:
        can_join = can_join and kept[-1].stage == look.stage
        kept[-1:] = [joined(kept[-1], look)] if can_join else [*kept[-1:], look]
        can_join = not can_join
    return kept


def joined(a: LoopLook, b: LoopLook) -> LoopLook:
    """Return two looks that follow one another as one."""
    times = add([a.times, b.times]) or b.times
    return LoopLook(
        counted=both(a.counted, b.counted),
        times=times,
        stage=b.stage,
        rss_bytes=b.rss_bytes,
        queued_ns=a.queued_ns + b.queued_ns,
    )


def both(a: Counted, b: Counted) -> Counted:
    return Counted(counts=total([a.counts, b.counts]), wall_ns=a.wall_ns + b.wall_ns)


def total(counts: Sequence[Counts]) -> dict[str, int]:
    names = dict.fromkeys(name for each in counts for name in each)
    return {name: sum(each.get(name, 0) for each in counts) for name in names}


def whole(name: str, given: int) -> int:
    """What was given, where it is a whole number of at least 0; InputError where it is not."""
    if given.__class__ is int and given >= 0:
        return given
    try:
        number = index(given)  # NumPy's and torch's whole numbers are welcome
    except TypeError:
        number = -1
    if number < 0:
        raise InputError(f"{name}={given!r} does not fit: expected a whole number of at least 0")
    return number
