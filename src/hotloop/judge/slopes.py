"""Slopes: what a delay in one part costs the whole, and so what a speed-up of that part would be worth.

Where a part is on the way of everything, a nanosecond more in it costs a nanosecond: its slope is 1, and
Amdahl's law holds. Where it is hidden behind something slower, the slope is 0 and to make it faster buys
nothing, however large its share.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median

from hotloop.core.record.codec import Interval
from hotloop.judge.case import speed_up
from hotloop.stats.intervals import ONE_MISS_IN, sign_interval

HIDDEN = 0.5  # Of a delay that must cost nothing for a part to be called hidden
UNTOLD = "cannot tell yet"

FASTER = 2.0  # How many times as fast a part is taken to be made


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One turn with a delay in a part, and the turn without one beside it; all of one update."""

    part: str
    own_ns: float  # What the part takes without a delay, in whichever threads it runs
    base_ns: float
    delayed_ns: float
    inserted_ns: float  # Of delay, as it was measured

    @property
    def slope(self) -> float:
        return (self.delayed_ns - self.base_ns) / self.inserted_ns

    @property
    def share(self) -> float:
        return self.own_ns / self.base_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Causal:
    """One part: what it should be worth by its share, and what it was seen to be worth."""

    part: str
    trials: int
    share: float  # Of the wall; of several threads, of theirs together
    predicted: float  # Times as fast in all by Amdahl's law, were the part twice as fast
    predicted_interval: Interval | None
    slope: float
    slope_interval: Interval | None
    seen: float  # Times as fast in all by the slope
    seen_interval: Interval | None
    said: str  # How the two stand to each other
    # Turns that could tell, by how far the interval reaches now; None if these could, or none would.
    enough: int | None = None


def causal(trials: Sequence[Trial]) -> tuple[Causal, ...]:
    """Return all parts, the one that is worth most first."""
    parts = dict.fromkeys(trial.part for trial in trials)
    rarely = ONE_MISS_IN * max(len(parts), 1)  # so that all intervals hold together
    found = [of_part([trial for trial in trials if trial.part == part], rarely) for part in parts]
    return tuple(sorted(found, key=lambda each: -each.seen))


def of_part(trials: Sequence[Trial], one_miss_in: int = ONE_MISS_IN) -> Causal:
    """Return the slope of a part, by the median over its turns, with its exact interval."""
    shares, slopes = [trial.share for trial in trials], [trial.slope for trial in trials]
    share, slope = median(shares), median(slopes)
    share_ends, slope_ends = sign_interval(shares, one_miss_in), sign_interval(slopes, one_miss_in)
    predicted_ends = seen_ends = None
    if share_ends and slope_ends:
        predicted_ends = worth(share_ends[0], 1.0), worth(share_ends[1], 1.0)
        seen_ends = worth(share_ends[0], slope_ends[0]), worth(share_ends[1], slope_ends[1])
    return Causal(
        part=trials[0].part,
        trials=len(trials),
        share=share,
        predicted=worth(share, 1.0),
        predicted_interval=predicted_ends,
        slope=slope,
        slope_interval=slope_ends,
        seen=worth(share, slope),
        seen_interval=seen_ends,
        said=compared(slope_ends),
        enough=enough(len(trials), slope, slope_ends),
    )


def enough(turns: int, slope: float, ends: Interval | None) -> int | None:
    """Turns after which an interval would end short of the line: four times as many make it half as wide."""
    distance = abs(slope - HIDDEN)
    if ends is None or compared(ends) != UNTOLD or not distance:
        return None
    reach = slope - ends[0] if slope > HIDDEN else ends[1] - slope
    return ceil(turns * (reach / distance) ** 2)


def worth(share: float, slope: float) -> float:
    """Times as fast in all, were a part twice as fast of whose time so much counts."""
    return speed_up(max(0.0, min(share * slope, 1.0)), FASTER)


def compared(slope: Interval | None) -> str:
    """Return what the interval of a slope says about overlap."""
    if slope is None:
        return "too few turns"
    low, high = slope
    if high < HIDDEN:
        return "hidden" if low <= HIDDEN / 2 else "partly hidden"
    if low > HIDDEN:
        return "as predicted" if low <= 1 / HIDDEN else "worth more than that"
    return UNTOLD
