"""The course of a run: its stages, and whether its speed falls or its memory grows from look to look."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from hotloop.core.errors import Code, Notice, notice
from hotloop.core.record import ENV_STEPS_PER_S, Record
from hotloop.core.record.metadata import PathRan, Work
from hotloop.core.record.profile import WALL, Looks, Phase
from hotloop.core.time_tree import TimeTree
from hotloop.stats.summary import (
    FEWEST_LEVELS,
    SIDE,
    SUSPECT,
    Slope,
    drift,
    slope,
    splits_by_distance,
    with_metrics,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Shares = NDArray[np.float64]

MOVED = 0.1  # Of the time, by which the share of a row must change at once
ABRUPT = 0.7  # What is left of the distance from a line if the change is a step, at most: a decay is no phase
SWITCHED = 0.9  # Of the looks on one side of a change that a row must be in, and be missing from on the other
MOST_STAGES = 6  # A run that changes more often goes to and fro, and is one population
UPDATES_PER_S, AGENT_STEPS_PER_S = "updates_per_s", "agent_steps_per_s"


def find_changes(looks: Sequence[TimeTree]) -> tuple[int, ...]:
    """Return the indices of looks from which on a loop spends its time on other rows, all of a sudden."""
    if len(looks) < FEWEST_LEVELS:
        return ()
    import numpy as np

    shares = shares_of(looks)
    distances = np.abs(shares[:, None, :] - shares[None, :, :]).sum(axis=2)
    kept: list[int] = []
    found = sorted(index for index, _ in splits_by_distance(distances))
    for at, after in pairwise([*found, len(looks)]):
        before = kept[-1] if kept else 0
        switch = find_switch(shares[before:after])
        if switch or is_step(shares[before:after], at - before):
            kept.append(before + switch if switch else at)
    return tuple(kept) if len(kept) < MOST_STAGES else ()


def shares_of(looks: Sequence[TimeTree]) -> "Shares":
    """Return the share of each row in each look; of a row with parts, what it takes itself."""
    import numpy as np

    paths = dict.fromkeys(row.path for look in looks for row in look.rows)
    places = {path: place for place, path in enumerate(paths)}
    shares = np.zeros((len(looks), len(places)))
    for number, look in enumerate(looks):
        wall_ns = max(look.total_ns, 1)
        for row in look.rows:
            shares[number, places[row.path]] += row.total_ns / wall_ns
            if row.above:
                shares[number, places[row.above]] -= row.total_ns / wall_ns
    return shares


def find_switch(shares: "Shares") -> int | None:
    """Return the look from which on a row that matters is there, or is gone; None if there is no such row."""
    import numpy as np

    count = len(shares)
    seen = np.cumsum(shares > 0, axis=0)
    ends = np.arange(SIDE, count - SIDE + 1)
    if not ends.size:
        return None
    before, after = seen[ends - 1] / ends[:, None], (seen[-1] - seen[ends - 1]) / (count - ends)[:, None]
    moved = [np.abs(np.median(shares[:end], axis=0) - np.median(shares[end:], axis=0)) for end in ends]
    turned = np.where(np.array(moved) < MOVED / 2, 0.0, np.abs(after - before))
    place, row = divmod(int(turned.argmax()), turned.shape[1])
    return int(ends[place]) if turned[place, row] >= SWITCHED else None


def is_step(shares: "Shares", at: int) -> bool:
    """Return whether the row that changes most does so at once, and not little by little."""
    import numpy as np

    before, after = np.median(shares[:at], axis=0), np.median(shares[at:], axis=0)
    row = int(np.abs(after - before).argmax())
    if abs(after[row] - before[row]) < MOVED:
        return False
    values, number = shares[:, row], np.arange(len(shares))
    from_line = np.abs(values - np.polyval(np.polyfit(number, values, 1), number)).sum()
    levels = np.where(number < at, before[row], after[row])
    return bool(np.abs(values - levels).sum() < ABRUPT * from_line)


def views(record: Record) -> tuple[Record, ...]:
    """Return each phase of a run as a record of its own; nothing if the run is one population.

    A view has the rows, looks and work of its phase, and nothing that is only known of the whole run. Its
    phase is its only stage.
    """
    stages = record.stages if len(record.stages) > 1 else ()
    whole, agents = record.looks or Looks(), record.work.agent_steps / max(record.work.env_steps, 1)
    found = []
    for number, stage in enumerate(stages):
        mine = [index for index, each in enumerate(whole.stages) if each == number]
        looks = Looks(
            wall_ns=tuple(whole.wall_ns[index] for index in mine),
            updates=tuple(whole.updates[index] for index in mine),
            env_steps=tuple(whole.env_steps[index] for index in mine),
            rss_bytes=tuple(whole.rss_bytes[index] for index in mine),
            queued_ns=tuple(whole.queued_ns[index] for index in mine if whole.queued_ns),
        )
        steps = stage.env_steps
        view = replace(
            record,
            label=stage.name,
            work=Work(env_steps=steps, agent_steps=round(steps * agents), updates=stage.updates),
            values=speeds_of(looks, agents),
            phases=stage.phases,
            unaccounted_ns=stage.unaccounted_ns,
            looks=looks,
            stages=(stage,),
            path=PathRan(requested=record.path.requested, ran={}, counters={}),
            resources=None,
            overhead=None,
            findings=(),
        )
        found.append(with_metrics(view))
    return tuple(found)


def speeds_of(looks: Looks, agents: float = 1.0) -> dict[str, tuple[float, ...]]:
    """Return the speeds of the looks in which anything was counted, by what was counted."""
    found = {}
    for name, counts in ((ENV_STEPS_PER_S, looks.env_steps), (UPDATES_PER_S, looks.updates)):
        speeds = [n * 1e9 / ns for n, ns in zip(counts, looks.wall_ns, strict=True) if n and ns]
        found.update({name: tuple(speeds)} if speeds else {})
    if ENV_STEPS_PER_S in found and agents:
        found[AGENT_STEPS_PER_S] = tuple(speed * agents for speed in found[ENV_STEPS_PER_S])
    return found


def weight(record: Record, stage: Record) -> float:
    """Return which part of a run's time one of its phases takes."""
    whole, part = (each.phases[0].total_ns if each.phases else 0 for each in (record, stage))
    return part / whole if whole else 0.0


def where(record: Record, stage: Record) -> str:
    """Return in which phase of a run, in words."""
    is_declared = any(each.is_declared for each in record.stages)
    return f"in the phase {stage.label}" if is_declared else f"in {stage.label}"


LEAST_NS, LEAST_LOOKS = 5_000_000_000, 20  # Of a run, for a trend to be told
NEEDS = "at least 5 s and 20 windows or rounds"

FALL = 0.1  # Of its speed that a loop must lose
# Of its speed on a core, on a busy machine: neighbors slow down even a core that the loop has
BUSY_FALL = 0.2
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
        digits, blamed = ",.0f" if self.last >= 10 else ".3g", ""
        ends = f"{self.first:{digits}} to {self.last:{digits}}"
        if self.row:
            name = self.row.rpartition("/")[2]
            blamed = f"; {name} takes {self.times:.1f} times as long as in the beginning"
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
        return record.method.headline, list(zip(accumulate(steps), speeds, strict=True))
    found = speeds_of(looks)
    name = ENV_STEPS_PER_S if ENV_STEPS_PER_S in found else UPDATES_PER_S
    counts = looks.env_steps if name == ENV_STEPS_PER_S else looks.updates
    spent = [ns / 1e9 for n, ns in zip(counts, looks.wall_ns, strict=True) if n and ns]
    return name, list(zip(accumulate(spent), found.get(name, ()), strict=True))


def memory_points(record: Record) -> Points:
    """Return memory over time in bytes."""
    if record.looks and any(record.looks.rss_bytes):
        seconds = accumulate([ns / 1e9 for ns in record.looks.wall_ns])
        return list(zip(seconds, map(float, record.looks.rss_bytes), strict=True))
    points = record.resources.rss_over_time if record.resources else ()
    return [(at_ns / 1e9, float(size)) for at_ns, size in points]


def find_fall(record: Record) -> Fall | None:
    """Return how the speed of a run fell; None if it did not, or too little was seen of it."""
    name, points = speed_points(record)
    if not is_long(points) or not falls(points, FALL):
        return None
    # Other work on the machine slows a loop down, too: the speed must fall without that waiting as well.
    looks, least = record.looks, FALL if busy_load(record.machine) is None else BUSY_FALL
    if looks is not None and looks.queued_ns:
        pairs = zip(looks.wall_ns, looks.queued_ns, strict=True)
        looks = replace(looks, wall_ns=tuple(max(ns - each, ns // 10) for ns, each in pairs))
    if not falls(speed_points(replace(record, looks=looks))[1], least):
        return None
    speeds, ends = [speed for _, speed in points], [at for at, _ in points]
    third = len(speeds) // 3
    first, last = median(speeds[:third]), median(speeds[-third:])
    spans = (end - begin for begin, end in zip([0.0, *ends], ends, strict=False))
    lost = sum(max(0.0, 1 - speed / first) * spent for speed, spent in zip(speeds, spans, strict=True))
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


BUSY_LOAD = 0.5  # Load for each core before the run from which the machine is called busy


def busy_load(machine: Mapping[str, Any]) -> float | None:
    """Return the load before the run where it was enough to call the machine busy; else None."""
    load: float | None = machine.get("load")
    cores = machine.get("usable_cores") or 1
    return load if load is not None and load > BUSY_LOAD * cores else None
