"""Sweeps: laws, crossings, knees and what bounds threads, from the points; and which settings win."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import permutations
from operator import le
from statistics import fmean, median

from hotloop.core.record.experiments import (
    AGENT_SPEED,
    CPU_NS,
    LEARNING_BAND,
    PHASE,
    RSS,
    RUN_NS,
    STEP_NS,
    THREADS,
    TIMED_NS,
    Crossing,
    Efficiency,
    Growth,
    Knee,
    LearningCheck,
    Sweep,
    SweepPoint,
    Tried,
)
from hotloop.stats.fit import crossing, fit, knee
from hotloop.stats.summary import mean_interval, sign_interval

LITTLE = 0.02  # Of the step: a phase that takes less of every size is not worth a law
SMALLEST_BYTES = 1 << 18  # Memory that a process takes or gives back for reasons of its own
SLIGHT = 0.1  # Loss of efficiency that needs no reason

# How much the serial part may grow, over itself, from the fewest threads to the most and still be one.
STEADY = 0.5

# An axis, the other axes' values, and the points along it by size.
Line = tuple[str, dict[str, str], dict[float, SweepPoint]]


def conclude(sweep: Sweep, cores: int | None = None) -> Sweep:
    """Add all that follows from the points."""
    lines = list(lines_of(sweep))
    threads = [line for line in lines if line[0] == THREADS]
    others = [line for line in lines if line[0] != THREADS]
    return replace(
        sweep,
        growths=tuple(each for line in others for each in growths(line)),
        crossings=tuple(each for line in others for each in crossings(line)),
        knees=tuple(each for line in lines for each in knees(line)),
        efficiencies=tuple(each for line in threads for each in efficiencies(line, cores)),
    )


def number(word: str) -> float | None:
    """Return the size that a value is; None if it is a name, or no size."""
    try:
        value = float(word)
    except ValueError:
        return None
    return value if 0 < value < float("inf") else None


def lines_of(sweep: Sweep) -> Iterator[Line]:
    """Yield a line along every axis of numbers for each combination of the others."""
    for axis, values in sweep.axes.items():
        if not all(number(value) for value in values):
            continue
        lines = dict[str, Line]()
        for point in sweep.points:
            others = {key: value for key, value in point.at.items() if key != axis}
            line = lines.setdefault(str(others), (axis, others, {}))
            line[2][float(point.at[axis])] = point
        yield from lines.values()


def series(points: Mapping[float, SweepPoint], metric: str) -> dict[float, Sequence[float]]:
    """Return the values of one metric by size, where it was measured."""
    return {size: point.values[metric] for size, point in points.items() if point.values.get(metric)}


def growths(line: Line) -> Iterator[Growth]:
    """Yield the law of every metric and of every phase that is worth one."""
    axis, others, points = line
    for metric in metrics_of(points):
        found = fit(series(points, metric))
        if found is not None:
            yield Growth(axis=axis, at=others, metric=metric, **asdict(found))


def metrics_of(points: Mapping[float, SweepPoint]) -> list[str]:
    """Return what is fitted: the step or the run, memory, and phases that are worth it.

    Memory is fitted if it is beyond what a process takes by itself, at every size.
    """
    names = dict.fromkeys(name for point in points.values() for name in point.values)
    whole = [name for name in (RUN_NS, STEP_NS) if name in names][:1]
    held = series(points, RSS)
    is_seen = bool(held) and all(median(values) > SMALLEST_BYTES for values in held.values())
    return [*whole, *([RSS] if is_seen else []), *phases_of(points)]


def phases_of(points: Mapping[float, SweepPoint]) -> list[str]:
    """Return phases that somewhere take more than a little of the step, in their order."""
    names = dict.fromkeys(
        name for point in points.values() for name in point.values if name.startswith(PHASE)
    )
    return [name for name in names if any(share(point, name) > LITTLE for point in points.values())]


def share(point: SweepPoint, phase: str) -> float:
    """Return a phase's part of all phases of a point; of the whole step if functions contain others."""
    times = {name: median(values) for name, values in point.values.items() if name.startswith(PHASE)}
    whole = median(point.values[TIMED_NS]) if point.values.get(TIMED_NS) else sum(times.values())
    return times.get(phase, 0.0) / (whole or 1.0)


def crossings(line: Line) -> Iterator[Crossing]:
    axis, others, points = line
    for riser, fallen in permutations(phases_of(points), 2):
        found = crossing(series(points, riser), series(points, fallen))
        if found is not None:
            yield Crossing(
                axis=axis,
                at=others,
                riser=riser.removeprefix(PHASE),
                fallen=fallen.removeprefix(PHASE),
                size=found.size,
                low=found.between[0],
                high=found.between[1],
            )


def knees(line: Line) -> Iterator[Knee]:
    axis, others, points = line
    found = knee(series(points, AGENT_SPEED))
    if found is not None:
        yield Knee(axis=axis, at=others, size=found)


def efficiencies(line: Line, cores: int | None) -> Iterator[Efficiency]:
    """Yield what each number of threads brings over one, and what keeps it from more."""
    _, others, points = line
    walls = {size: median(values) for size, values in series(points, STEP_NS).items()}
    busy = {size: median(values) for size, values in series(points, CPU_NS).items()}
    if 1.0 not in walls or 1.0 not in busy:
        return
    made = []
    for size in (size for size in sorted(walls) if size > 1 and size in busy):
        threads, speedup, work = int(size), walls[1.0] / walls[size], busy[size] / busy[1.0]
        # Of the loss threads / speed-up, the part that is more work, and the part that is waiting.
        efficiency = Efficiency(
            at=others,
            threads=threads,
            speedup=speedup,
            work=work,
            idle=max(0.0, 1 - work * speedup / threads),
            serial=(1 / speedup - 1 / threads) / (1 - 1 / threads),
            bound="",
        )
        made.append(efficiency)
    for each in made:
        yield replace(each, bound=bound(each, made, cores))


def bound(each: Efficiency, all_of_them: Sequence[Efficiency], cores: int | None) -> str:
    """Return what keeps threads from being as many times as fast.

    More CPU time for the same steps is memory that they share, or waiting awake; threads that idle wait for
    a serial part, whose share is the same for any number of threads, or for each other at a barrier, whose
    price grows with them.
    """
    if cores is not None and each.threads > cores:
        return f"the machine's cores: there are {cores}"
    if each.speedup > each.threads * (1 - SLIGHT):
        return "nothing: it is nearly ideal"
    if each.work - 1 > each.idle:
        return "memory bandwidth: the same steps take more CPU time together"
    if len(all_of_them) < 2:
        return "a serial part or the barrier: more numbers of threads would tell which"
    first, last = all_of_them[0].serial, all_of_them[-1].serial
    return "the barrier: waiting grows with the threads" if last > first * (1 + STEADY) else "a serial part"


FLOOR_MISS_IN = 10  # Of the interval whose lower end is the floor: 5% on that side


def summarize_candidate(
    at: dict[str, str], speeds: Sequence[float], *, rungs: int, rss_bytes: float, latency_ns: float
) -> Tried:
    """Summarize what is known of one combination."""
    around = sign_interval(speeds)
    return Tried(
        at=at,
        speeds=tuple(speeds),
        median=median(speeds),
        low=around[0] if around else None,
        high=around[1] if around else None,
        rungs=rungs,
        rss_bytes=max(rss_bytes, 0.0),
        latency_ns=latency_ns,
    )


def survivors(speeds: Mapping[str, Sequence[float]]) -> list[str]:
    """Return the faster half, by their medians, and one at least."""
    ordered = sorted(speeds, key=lambda name: -median(speeds[name]))
    return ordered[: max(1, -(-len(ordered) // 2))]


def winner(found: Sequence[Tried]) -> Tried:
    """Return the candidate of the last rung with the highest lower confidence bound."""
    furthest = max(each.rungs for each in found)
    final = [each for each in found if each.rungs == furthest]
    return max(final, key=lambda each: (each.low if each.low is not None else min(each.speeds), each.median))


def floor(speeds: Sequence[float]) -> float | None:
    """Return the speed that the same settings do not miss by chance; None if there are too few rounds."""
    around = sign_interval(speeds, FLOOR_MISS_IN)
    return around[0] if around else None


def mark_best(found: Sequence[Tried]) -> tuple[Tried, ...]:
    """Mark the candidates that no other dominates: none is as fast, small and quick, and better in one."""
    costs = [(-each.median, each.rss_bytes, each.latency_ns) for each in found]
    return tuple(
        replace(each, best=not any(all(map(le, other, own)) and other != own for other in costs))
        for each, own in zip(found, costs, strict=True)
    )


def learning_check(
    env_steps: int,
    present: Sequence[float],
    of_winner: Sequence[float],
    untrained: Sequence[float] = (),
    band: float = LEARNING_BAND,
) -> LearningCheck:
    """Return the difference of two trainings over seeds that both share."""
    differences = [b - a for a, b in zip(present, of_winner, strict=True)]
    around = mean_interval(differences) or (min(differences), max(differences))
    return LearningCheck(
        env_steps=env_steps,
        present=tuple(present),
        winner=tuple(of_winner),
        difference=fmean(differences),
        low=around[0],
        high=around[1],
        untrained=tuple(untrained),
        band=band,
    )
