"""The windows of a loop, all of them together, and the phases of its run between change points."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import index

from hotloop.core.errors import InputError
from hotloop.core.record.profile import Looks, Stage, describe_times
from hotloop.core.time_tree import TimeTree, add
from hotloop.judge.course import find_changes

MOST_WINDOWS = 8_192  # That a run keeps apart; beyond that, neighbours are put together
MOST_ROUNDS = 64  # Whose trees are kept apart: as many as an interval needs, and no more
MOST_LOOKS = 256  # That a run keeps; beyond that, neighbours of one stage are put together
UPDATES, STEPS, SAMPLES = "updates", "env_steps", "samples"  # What is counted

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
    updates: int  # Of the run so far
    steps: int  # Of the run so far
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
    stage: str  # The phase that the loop has declared; empty if none
    rss_bytes: int
    queued_ns: int = 0  # What its thread waited for a core


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


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLooks:
    """One phase of a run, with its looks in order."""

    name: str
    is_declared: bool
    looks: tuple[LoopLook, ...]

    def counted(self, name: str) -> int:
        """Return how often something was counted in it."""
        return sum(look.counted.counts.get(name, 0) for look in self.looks)


def stages_of(looks: Sequence[LoopLook]) -> tuple[StageLooks, ...]:
    """Return the phases of a run; nothing if it is one population."""
    names = dict.fromkeys(look.stage for look in looks)
    if any(names):
        declared = [
            StageLooks(
                name=name or "no phase",
                is_declared=True,
                looks=tuple(look for look in looks if look.stage == name),
            )
            for name in names
        ]
        return tuple(each for each in declared if each.counted(UPDATES) or each.counted(STEPS))
    changes = find_changes([look.times for look in looks])
    if not changes:
        return ()
    ends = pairwise((0, *changes, len(looks)))
    return tuple(
        StageLooks(name=stretch_of(looks, first, last), is_declared=False, looks=tuple(looks[first:last]))
        for first, last in ends
    )


def stretch_of(looks: Sequence[LoopLook], first: int, last: int) -> str:
    """Return which updates a stretch of looks is, in words; of a loop that counts none, which looks."""
    before, through = (
        sum(look.counted.counts.get(UPDATES, 0) for look in looks[:end]) for end in (first, last)
    )
    if through == before:
        return f"looks {first + 1} to {last}"
    return f"updates {before + 1:,} to {through:,}"


def describe_looks(looks: Sequence[LoopLook], stages: Sequence[StageLooks]) -> Looks:
    """Return speed and memory from look to look, as a record keeps them."""
    numbers = {id(look): number for number, stage in enumerate(stages) for look in stage.looks}
    kept = [look for look in looks if id(look) in numbers] if stages else looks
    return Looks(
        wall_ns=tuple(max(look.times.total_ns, 0) for look in kept),
        updates=tuple(look.counted.counts.get(UPDATES, 0) for look in kept),
        env_steps=tuple(look.counted.counts.get(STEPS, 0) for look in kept),
        rss_bytes=tuple(look.rss_bytes for look in kept),
        queued_ns=tuple(look.queued_ns for look in kept),
        stages=tuple(numbers[id(look)] for look in kept) if stages else (),
    )


def describe_stages(stages: Sequence[StageLooks]) -> Iterator[Stage]:
    for stage in stages:
        rounds = [look.times for look in stage.looks]
        times = add(rounds)
        if times is not None:
            yield Stage(
                name=stage.name,
                is_declared=stage.is_declared,
                env_steps=stage.counted(STEPS),
                updates=stage.counted(UPDATES),
                phases=describe_times(replace(times, calls=1), few(rounds)),
                unaccounted_ns=times.unaccounted_ns,
            )


def few(rounds: Sequence[TimeTree]) -> list[TimeTree]:
    """Return neighbours put together until there are few enough to keep apart."""
    kept = list(rounds)
    while len(kept) > MOST_ROUNDS:
        kept = [each for at in range(0, len(kept), 2) if (each := add(kept[at : at + 2]))]
    return kept
