"""Radius queries over moving points, beside SciPy's cKDTree, in turns on one core.

    ./.venv/bin/python benchmarks/spatial.py [--points 10000] [--rounds 20]

Every round moves all points, then each contender is brought up to date and asked for all neighbours of all
points within a radius that holds about ten. SciPy is asked twice: for lists, and for pairs as one array, so
that Python lists are not what is beaten.
"""

import argparse
from collections.abc import Callable
from statistics import median

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from hotloop.core.clock import now_ns
from hotloop.envs.spatial import KINDS, Index

NEIGHBOURS = 10
SIDE = 1_000.0

Points = NDArray[np.float32]
Contender = Callable[[Points], int]


def indexed(kind: str, points: Points, reach: float) -> Contender:
    """Moves the points of one index, and asks it; returns how many neighbours there are."""
    index = Index(kind, points, cell=reach)
    everyone = np.arange(len(points))

    def ask(now: Points) -> int:
        index.move(everyone, now)
        return len(index.nearby(now, reach)[1])

    return ask


def contenders(points: Points, reach: float) -> dict[str, Contender]:
    """Each returns the number of neighbours, oneself included."""

    def lists(now: Points) -> int:
        return sum(map(len, cKDTree(now).query_ball_point(now, reach, workers=1)))

    def pairs(now: Points) -> int:
        return 2 * len(cKDTree(now).query_pairs(reach, output_type="ndarray")) + len(now)

    ours = {kind: indexed(kind, points, reach) for kind in KINDS}
    return {**ours, "cKDTree query_ball_point": lists, "cKDTree query_pairs": pairs}


def measure(count: int, rounds: int) -> tuple[dict[str, list[float]], float]:
    """Milliseconds of each contender and round, and the mean number of neighbours."""
    rng = np.random.default_rng(1)
    reach = float(np.float32(SIDE * np.sqrt(NEIGHBOURS / (np.pi * count))))
    points = rng.uniform(0, SIDE, (count, 2)).astype(np.float32)
    asked = contenders(points, reach)
    taken: dict[str, list[float]] = {name: [] for name in asked}
    found: dict[str, int] = {}
    for turn in range(rounds + 2):
        points = np.clip(points + rng.normal(0, 1, points.shape), 0, SIDE).astype(np.float32)
        for name in sorted(asked, key=lambda name: hash((turn, name)) if turn else 0):
            start = now_ns()
            found[name] = asked[name](points)
            if turn >= 2:
                taken[name].append((now_ns() - start) / 1e6)
        check(found)
    return taken, found["grid"] / count - 1


def check(found: dict[str, int]) -> None:
    """All kinds find the same; SciPy measures in float64, so that single points on the border may differ."""
    assert len({found[kind] for kind in KINDS}) == 1, found
    assert max(found.values()) - min(found.values()) <= max(found.values()) // 1000, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="a few rounds over few points, to try it out")
    given = parser.parse_args()
    if given.quick:
        given.points, given.rounds = 500, 3
    taken, neighbours = measure(given.points, given.rounds)
    lists, pairs = taken["cKDTree query_ball_point"], taken["cKDTree query_pairs"]
    print(f"{given.points:,} moving points, {neighbours:.1f} neighbours each, {given.rounds} rounds in turns")
    print(f"{'':26}{'ms':>9}{'lists / it':>12}{'pairs / it':>12}")
    for name, times in taken.items():
        ratios = [median(a / b for a, b in zip(theirs, times, strict=True)) for theirs in (lists, pairs)]
        print(f"{name:26}{median(times):9.2f}{ratios[0]:12.1f}{ratios[1]:12.1f}")


if __name__ == "__main__":
    main()
