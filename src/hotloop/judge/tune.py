"""Choosing settings: who goes on to the next rung, who wins, and who is beaten in everything."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median

from hotloop.core.record.sweep import LEARNING_BAND, Learnt, Tried
from hotloop.stats.intervals import mean_interval, sign_interval

FLOOR_MISS_IN = 10  # Of the interval whose lower end is the floor: 5% on that side


def tried(
    at: dict[str, str], speeds: Sequence[float], *, rungs: int, rss_bytes: float, latency_ns: float
) -> Tried:
    """What is known of one combination."""
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
    """The faster half, by their medians, and one at least."""
    ordered = sorted(speeds, key=lambda name: -median(speeds[name]))
    return ordered[: max(1, -(-len(ordered) // 2))]


def winner(found: Sequence[Tried]) -> Tried:
    """Whose interval's lower end is the highest of those that came furthest: luck alone does not raise it."""
    furthest = max(each.rungs for each in found)
    final = [each for each in found if each.rungs == furthest]
    return max(final, key=lambda each: (each.low if each.low is not None else min(each.speeds), each.median))


def floor(speeds: Sequence[float]) -> float | None:
    """The speed that the same settings do not miss by chance."""
    around = sign_interval(speeds, FLOOR_MISS_IN)
    return around[0] if around else None


def marked(found: Sequence[Tried]) -> tuple[Tried, ...]:
    """The same, those marked that nobody beats in one thing and equals in the others."""
    return tuple(replace(each, best=not any(beats(other, each) for other in found)) for each in found)


def beats(one: Tried, other: Tried) -> bool:
    mine, theirs = ((-each.median, each.rss_bytes, each.latency_ns) for each in (one, other))
    return all(a <= b for a, b in zip(mine, theirs, strict=True)) and mine != theirs


def learnt(
    env_steps: int,
    present: Sequence[float],
    of_winner: Sequence[float],
    untrained: Sequence[float] = (),
    band: float = LEARNING_BAND,
) -> Learnt:
    """The difference of two trainings over seeds that both share."""
    differences = [b - a for a, b in zip(present, of_winner, strict=True)]
    around = mean_interval(differences) or (min(differences), max(differences))
    return Learnt(
        env_steps=env_steps,
        present=tuple(present),
        winner=tuple(of_winner),
        difference=fmean(differences),
        low=around[0],
        high=around[1],
        untrained=tuple(untrained),
        band=band,
    )
