"""The course of a run: whether its speed falls or its memory grows from look to look."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from hotloop.core.notices import Code, Notice, notice
from hotloop.core.record.profile import WALL, Phase
from hotloop.core.record.record import ENV_STEPS_PER_S, Record
from hotloop.judge.busy import busy_load
from hotloop.judge.stages import UPDATES_PER_S, speeds_of, views, where
from hotloop.stats.slope import Slope, slope
from hotloop.stats.trend import SUSPECT, drift

LEAST_NS, LEAST_LOOKS = 5_000_000_000, 20  # Of a run, for a trend to be told
NEEDS = "at least 5 s and 20 windows or rounds"

FALL = 0.1  # Of its speed that a loop must lose
BUSY_FALL = (
    0.2  # Of its speed on a core, on a busy machine: neighbors slow down even a core that the loop has
)
START = 0.2  # Of the looks at memory, that are let by: there caches fill and pools grow
GROWTH_SHARE, GROWTH_BYTES = 0.02, 4 << 20  # Of the memory, and in bytes: what it must surely grow by
EVEN = 0.2  # Of its growth, that must come in each half of the looks
MIB = 1 << 20

Points = Sequence[tuple[float, float]]  # Seconds, and a value


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """A speed that falls steadily."""

    first: float  # The median of the first third of the looks
    last: float  # Of the last third
    unit: str
    seconds: float
    lost: float  # Share of the time that would not have been spent at the speed of the beginning
    row: str | None  # The path of the row that takes longer; None if no single one does
    times: float  # How many times as long that row takes at the end

    @property
    def said(self) -> str:
        ends = (
            f"{self.first:,.0f} to {self.last:,.0f}"
            if self.last >= 10
            else f"{self.first:.3g} to {self.last:.3g}"
        )
        blamed = ""
        if self.row:
            blamed = (
                f"; {self.row.rpartition('/')[2]} takes {self.times:.1f} times as long as in the beginning"
            )
        return f"the speed fell from {ends} {self.unit} in {self.seconds:.0f} s{blamed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rise:
    """Memory that grows to the end."""

    bytes: float
    seconds: float
    rate: Slope  # Bytes per second

    @property
    def said(self) -> str:
        low, high = (end / MIB for end in (self.rate.low, self.rate.high))
        speed = f"{self.rate.estimate / MIB:.2g} [{low:.2g}, {high:.2g}] MiB/s"
        return f"memory grew by {self.bytes / MIB:,.0f} MiB in {self.seconds:.0f} s: {speed}"


def is_long(points: Points) -> bool:
    """Return whether looks are enough, and far enough apart, for a trend."""
    return len(points) >= LEAST_LOOKS and (points[-1][0] - points[0][0]) * 1e9 >= LEAST_NS * (
        1 - 1 / LEAST_LOOKS
    )


def speed_points(record: Record) -> tuple[str, Points]:
    """Return the metric and the speed of each look; of a record without looks, of each round."""
    looks = record.looks
    if looks is None:
        speeds = record.values.get(record.method.headline, ())
        steps = [record.method.iterations / speed if speed else 0.0 for speed in speeds]
        return record.method.headline, list(zip(ends_of(steps), speeds, strict=True))
    found = speeds_of(looks)
    name = ENV_STEPS_PER_S if ENV_STEPS_PER_S in found else UPDATES_PER_S
    counts = looks.env_steps if name == ENV_STEPS_PER_S else looks.updates
    spent = [ns / 1e9 for n, ns in zip(counts, looks.wall_ns, strict=True) if n and ns]
    return name, list(zip(ends_of(spent), found.get(name, ()), strict=True))


def off_the_queue(record: Record) -> Record:
    """Return a record whose looks lack the time in which the loop's thread waited for a core."""
    looks = record.looks
    if looks is None or not looks.queued_ns:
        return record
    pairs = zip(looks.wall_ns, looks.queued_ns, strict=True)
    return replace(
        record, looks=replace(looks, wall_ns=tuple(max(ns - each, ns // 10) for ns, each in pairs))
    )


def ends_of(seconds: Sequence[float]) -> Iterator[float]:
    total = 0.0
    for each in seconds:
        total += each
        yield total


def memory_points(record: Record) -> Points:
    """Return memory over time in bytes."""
    if record.looks and any(record.looks.rss_bytes):
        seconds = ends_of([ns / 1e9 for ns in record.looks.wall_ns])
        return list(zip(seconds, map(float, record.looks.rss_bytes), strict=True))
    points = record.resources.rss_over_time if record.resources else ()
    return [(at_ns / 1e9, float(size)) for at_ns, size in points]


def find_fall(record: Record) -> Fall | None:
    """Return how the speed of a run fell; None if it did not, or too little was seen of it."""
    name, points = speed_points(record)
    least = FALL if busy_load(record.machine) is None else BUSY_FALL
    # Other work on the machine slows a loop down, too: the speed must fall without that waiting as well.
    if (
        not is_long(points)
        or not falls(points, FALL)
        or not falls(speed_points(off_the_queue(record))[1], least)
    ):
        return None
    speeds = [speed for _, speed in points]
    third = len(speeds) // 3
    first, last = median(speeds[:third]), median(speeds[-third:])
    lost = sum(
        max(0.0, 1 - speed / first) * spent for speed, spent in zip(speeds, spans_of(points), strict=True)
    )
    row, times = slower_row(record.phases, first, last)
    return Fall(
        first=first,
        last=last,
        unit=name.removesuffix("_per_s").replace("_", "-") + "/s",
        seconds=points[-1][0],
        lost=min(lost / points[-1][0], 0.99),
        row=row,
        times=times,
    )


def falls(points: Points, least: float) -> bool:
    """Return whether speeds fall steadily, and by at least this share."""
    speeds = [speed for _, speed in points]
    third, trend = len(speeds) // 3, drift(speeds)
    ends = median(speeds[:third]), median(speeds[-third:])
    return trend.p < SUSPECT and trend.change <= -least and ends[1] <= (1 - least) * ends[0]


def spans_of(points: Points) -> Iterator[float]:
    before = 0.0
    for at, _ in points:
        yield at - before
        before = at


def slower_row(phases: Sequence[Phase], first: float, last: float) -> tuple[str | None, float]:
    """Return the innermost row that most of the added time of a step went to, and how it grew.

    `first` and `last` are the speeds of the first and the last third of the run.
    """
    walls = next((phase.rounds_ns for phase in phases if phase.path == WALL), ())
    third, added = len(walls) // 3, 1 / last - 1 / first
    found: dict[str, float] = {}
    for phase in phases if third else ():
        shares = [ns / max(wall, 1) for ns, wall in zip(phase.rounds_ns, walls, strict=False)]
        before, after = median(shares[:third]) / first, median(shares[-third:]) / last
        if phase.path.startswith(f"{WALL}/") and before and after - before > added / 2:
            found[phase.path] = after / before
    row = max(found, key=lambda path: path.count("/"), default=None)
    return (row, found[row]) if row else (None, 1.0)


def find_rise(record: Record) -> Rise | None:
    """Return how the memory of a run grew; None if it did not, or too little was seen of it."""
    points = memory_points(record)
    if not is_long(points):
        return None
    judged = points[int(START * len(points)) :]
    sizes = [size for _, size in judged]
    seconds = judged[-1][0] - judged[0][0]
    found = slope([at for at, _ in judged], sizes)
    least = max(GROWTH_BYTES, GROWTH_SHARE * sizes[0])
    grown = sizes[-1] - sizes[0]
    early = sizes[len(sizes) // 2] - sizes[0]
    if found.low * seconds < least or not EVEN * grown <= early <= (1 - EVEN) * grown:
        return None
    return Rise(bytes=grown, seconds=seconds, rate=found)


def course_notices(record: Record) -> Iterator[Notice]:
    """Say if the speed of a run fell or its memory grew, in each of its phases."""
    stages = views(record)
    for each in stages or (record,):
        there = f"{where(record, each)}: " if stages else ""
        fall, rise = find_fall(each), find_rise(each)
        if fall and record.looks:
            yield notice(Code.FALLING, fall=fall.said, where=there)
        if rise:
            yield notice(Code.GROWING, rise=rise.said, where=there)
