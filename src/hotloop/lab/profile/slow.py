"""The slowest step calls, and how calls varied, kept in bounded memory however many there are."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from hotloop.core.record.profile import WALL, Pauses, SlowStep, Spread
from hotloop.lab.profile.calls import Calls, Numbers, Sample
from hotloop.stats.histogram import Histogram

KEPT = 10
"""Slowest calls without a reset, and as many with one."""

Check = tuple[int, str]
"""A step, and what all envs gave back after it, hashed."""


class Kind:
    """The calls in which no episode began, or those in which one did."""

    def __init__(self) -> None:
        self._histograms: dict[str, Histogram] = {}
        self.slowest: list[SlowStep] = []

    def count(self, sample: Sample, which: NDArray[np.bool_]) -> None:
        """Take in the times of one phase, of the calls that are of this kind."""
        mine = (sample.call >= 0) & which[sample.call]
        if mine.any():
            self._histograms.setdefault(sample.path, Histogram()).add(sample.ns[mine])

    def admit(self, candidates: list[SlowStep]) -> None:
        """Keep the slowest, the slowest first."""
        both = sorted([*self.slowest, *candidates], key=lambda step: -step.wall_ns)
        self.slowest = both[:KEPT]

    def spreads(self) -> dict[str, Spread]:
        return {path: spread_of(path, histogram) for path, histogram in self._histograms.items()}

    @property
    def typical_ns(self) -> float | None:
        known = self._histograms.get(WALL)
        return known.percentile(0.50) if known else None


def spread_of(path: str, histogram: Histogram) -> Spread:
    return Spread(
        path=path,
        calls=histogram.count,
        p50_ns=histogram.percentile(0.50),
        p95_ns=histogram.percentile(0.95),
        p99_ns=histogram.percentile(0.99),
        max_ns=float(histogram.max),
    )


class Keeper:
    """Takes in calls, stretch after stretch."""

    def __init__(self, *, seed: int, num_envs: int) -> None:
        self._seed, self._num_envs = seed, num_envs
        self.ordinary, self.with_reset, self.warmup = Kind(), Kind(), Kind()
        self.calls = self.missed = 0
        self.pauses = Pauses()

    def add(self, calls: Calls, before: int, check: Check) -> list[int]:
        """Take in a stretch that began after step `before`; returns which of its calls are now kept."""
        self.calls += len(calls)
        self.pauses = add_pauses(self.pauses, calls.gc.ns)
        kept: list[int] = []
        for kind, which in ((self.ordinary, calls.resets == 0), (self.with_reset, calls.resets > 0)):
            for sample in calls.samples:
                kind.count(sample, which)
            chosen = slowest_of(calls.wall_ns, which)
            kind.admit([self.describe(calls, call, before, check) for call in chosen])
            steps = {step.step for step in kind.slowest}
            kept += [call for call in chosen if before + call + 1 in steps]
        return kept

    def describe(self, calls: Calls, call: int, before: int, check: Check) -> SlowStep:
        """Everything that is known of one call of a stretch."""
        pauses = calls.gc.ns[calls.gc.call == call]
        env = int(calls.env[call])
        return SlowStep(
            rank=0,
            step=before + call + 1,
            env=0 if self._num_envs == 1 else env if env >= 0 else None,
            seed=self._seed,
            wall_ns=int(calls.wall_ns[call]),
            phases=calls.phases(call),
            resets=int(calls.resets[call]),
            gc_ns=int(pauses.sum()),
            collections=len(pauses),
            put_off=int(calls.put_off.ns[calls.put_off.call == call].sum()),
            check_step=check[0],
            check=check[1],
        )

    def warm(self, slowest: Sequence[tuple[int, int]], check: Check) -> None:
        """Keep the slowest calls of the warm-up, each its ns and its step."""
        self.warmup.admit(
            [
                SlowStep(
                    rank=0,
                    step=step,
                    env=0 if self._num_envs == 1 else None,
                    seed=self._seed,
                    wall_ns=wall_ns,
                    phases={WALL: wall_ns},
                    resets=0,
                    gc_ns=0,
                    collections=0,
                    check_step=check[0],
                    check=check[1],
                )
                for wall_ns, step in slowest
            ]
        )

    def ranked(self) -> list[tuple[SlowStep, ...]]:
        """The slowest without a reset, with one, and of the warm-up, numbered through."""
        ranks = count(1)
        kinds = (self.ordinary, self.with_reset, self.warmup)
        return [tuple(replace(step, rank=next(ranks)) for step in kind.slowest) for kind in kinds]


def slowest_of(wall_ns: Numbers, which: NDArray[np.bool_]) -> list[int]:
    """The slowest calls of some, the slowest first."""
    mine = np.flatnonzero(which)
    order = np.argsort(-wall_ns[mine], kind="stable")[:KEPT]
    chosen: list[int] = mine[order].tolist()
    return chosen


def add_pauses(pauses: Pauses, ns: Numbers) -> Pauses:
    return Pauses(
        collections=pauses.collections + len(ns),
        total_ns=pauses.total_ns + int(ns.sum()),
        longest_ns=max(pauses.longest_ns, int(ns.max(initial=0))),
    )
