"""Radius queries over moving points, beside SciPy's cKDTree, in turns on one core.

    ./.venv/bin/python benchmarks/spatial.py [--points 10000] [--rounds 20] [--quick]

Every round moves all points, then each contender is brought up to date and asked for all neighbours of all
points within a radius that holds about ten. SciPy is asked twice: for lists, and for pairs as one array, so
that Python lists are not what is beaten. Times are CPU time, which a busy machine takes less from.
"""

from collections.abc import Callable
from functools import partial
from itertools import islice
from statistics import median
from time import process_time_ns

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

import benchmark
from hotloop.envs.spatial import KINDS, Index
from hotloop.lab.measure.loop import rounds_of
from hotloop.stats.summary import ratio

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
    """CPU milliseconds of each contender and round, and the mean number of neighbours."""
    rng = np.random.default_rng(1)
    reach = float(np.float32(SIDE * np.sqrt(NEIGHBOURS / (np.pi * count))))
    points = rng.uniform(0, SIDE, (count, 2)).astype(np.float32)
    asked = contenders(points, reach)
    found: dict[str, int] = {}

    def turn(name: str) -> float:
        start = process_time_ns()
        found[name] = asked[name](points)
        return (process_time_ns() - start) / 1e6

    taken: dict[str, list[float]] = {name: [] for name in asked}
    for number, round_ in enumerate(
        islice(rounds_of({name: partial(turn, name) for name in asked}), rounds + 2)
    ):
        if number >= 2:
            for name, ms in round_.items():
                taken[name].append(ms)
        check(found)
        points = np.clip(points + rng.normal(0, 1, points.shape), 0, SIDE).astype(np.float32)
    return taken, found["grid"] / count - 1


def check(found: dict[str, int]) -> None:
    """All kinds find the same; SciPy measures in float64, so that single points on the border may differ."""
    assert len({found[kind] for kind in KINDS}) == 1, found
    assert max(found.values()) - min(found.values()) <= max(found.values()) // 1000, found


def main() -> None:
    parser = benchmark.parser(__doc__, rounds=20)
    parser.add_argument("--points", type=int, default=10_000)
    given = parser.parse_args()
    benchmark.pin(benchmark.one_core())
    count = 500 if given.quick else given.points
    taken, neighbours = measure(count, benchmark.rounds_asked(given))
    lists, pairs = taken["cKDTree query_ball_point"], taken["cKDTree query_pairs"]
    rows = [
        [
            name,
            f"{median(times):.2f}",
            f"{min(times):.2f} .. {max(times):.2f}",
            benchmark.ratio_text(ratio(lists, times), 1),
            benchmark.ratio_text(ratio(pairs, times), 1),
        ]
        for name, times in taken.items()
    ]
    header = ["", "CPU ms", "over the rounds", "query_ball_point / it", "query_pairs / it"]
    about = (
        f"{count:,} moving points, {neighbours:.1f} neighbours each; each is brought up to date and asked."
    )
    text = "\n\n".join([about, benchmark.table(header, rows)])
    benchmark.publish("spatial", text, {"cpu_ms": taken, "neighbours": neighbours}, given)


if __name__ == "__main__":
    main()
