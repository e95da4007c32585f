"""A watch over the instrumented side of a profile: every step call, and the slowest, in bounded memory."""

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from heapq import heappush, heappushpop
from itertools import count, islice
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hotloop.core import spans
from hotloop.core.clock import now_ns
from hotloop.core.record.profile import WALL, Pauses, Slow, SlowStep, Spread
from hotloop.core.target import Target
from hotloop.core.turn_clock import repeat
from hotloop.envs.subject import Proxy, Subject
from hotloop.lab.measure.policy import Actions, Journal
from hotloop.lab.measure.sides import Resets, collecting
from hotloop.lab.profile import calls as table
from hotloop.lab.profile.calls import (
    HEAD,
    Calls,
    Events,
    Numbers,
    Sample,
    Steps,
    Timeline,
    read_spans,
    read_steps,
)
from hotloop.lab.profile.trace import Tracer
from hotloop.stats.histogram import RELATIVE_ERROR, Histogram

NO_RESETS = SimpleNamespace(resets=0)  # What stands in for a subject whose own log says which envs were reset
EVENTS = 1 << 18  # Spans and marks of a stretch: 8 MiB
STEPS_BYTES = 8 << 20  # Rows of a batch's steps of a stretch
FIRST_CALLS = 2_048  # Of the first stretch, before it is known how many events a call makes
FILLED = 0.7  # Of the log that a stretch is planned to fill


KEPT = 10  # Slowest calls without a reset, and as many with one

Check = tuple[int, str]  # A step, and what all envs gave back after it, hashed


class CallStatistics:
    """The calls in which no episode began, or those in which one did."""

    def __init__(self) -> None:
        self._histograms: dict[str, Histogram] = {}
        self.slowest: list[SlowStep] = []

    def count(self, sample: Sample, which: NDArray[np.bool_]) -> None:
        """Take in the times of one phase, of the calls that are of this kind."""
        mine = (sample.call >= 0) & which[sample.call]
        if mine.any():
            self._histograms.setdefault(sample.path, Histogram()).add(sample.ns[mine])

    def keep_if_slowest(self, candidates: list[SlowStep]) -> None:
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


class SlowestCalls:
    """Takes in calls, stretch after stretch."""

    def __init__(self, *, seed: int, num_envs: int) -> None:
        self._seed, self._num_envs = seed, num_envs
        self.ordinary, self.with_reset, self.warmup = CallStatistics(), CallStatistics(), CallStatistics()
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
            kind.keep_if_slowest([self.describe(calls, call, before, check) for call in chosen])
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
        self.warmup.keep_if_slowest(
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


class Watch:
    """Looks at stretches of calls: `with watch.look(): play(...)`, then `note`."""

    def __init__(
        self, subject: Subject, *, by_laps: bool, collects: bool, tracer: Tracer | None = None
    ) -> None:
        self._subject = subject
        self._by_laps = by_laps
        """Whether the loop itself marks its turns; a batch by itself has its steps."""
        self._collects = collects
        self._tracer = tracer
        self._batch = subject.step_log()
        self._timeline = Timeline()
        self._room = self._log_rows = FIRST_CALLS
        spec = subject.spec
        self.keeper = SlowestCalls(seed=spec.seed, num_envs=spec.num_envs)
        self.counted: Resets = NO_RESETS if subject.logs_itself else subject
        """What a lap is given the resets of."""
        self.steps = self.end_ns = 0
        """Calls since the reset; when the last stretch of a batch ended, by the reading that timed it."""
        self._warming = Warming(subject)
        self.last_step: SlowStep | None = None
        """The last call that was looked at."""
        self._resets = self.counted.resets

    def __enter__(self) -> Self:
        if self._by_laps:
            spans.keep(EVENTS)
        else:
            spans.keep(EVENTS // 16)  # nothing but the collector's pauses
        if self._batch is not None:
            threads, phases = self._batch.log_columns
            width = 8 * (HEAD + threads * len(phases))
            self._log_rows = max(1, min(STEPS_BYTES // width, EVENTS))
            self._room = self._log_rows if not self._by_laps else min(self._room, self._log_rows)
            self._batch.keep_log(self._log_rows)
        return self

    def __exit__(self, *_: object) -> None:
        spans.keep(0)
        if self._batch is not None:
            self._batch.keep_log(0)

    def warming(self, subject: Subject) -> "Warming":
        """The watched side as the warm-up is to step it."""
        self._warming = Warming(subject)
        return self._warming

    def begin(self) -> None:
        """Begin to look, after the warm-up."""
        self.steps = self._warming.steps
        self.keeper.warm(self._warming.slowest, (self.steps, fingerprint(self._subject)))
        self._resets = self.counted.resets
        if self._batch is not None:
            self._batch.take_log()

    def stretches(self, actions: Sequence[Actions], calls: int) -> Iterator[list[Actions]]:
        """The actions of a pass, cut into what the logs have room for."""
        script = repeat(actions, calls)
        while part := list(islice(script, self._room)):
            yield part

    @contextmanager
    def look(self) -> Iterator[None]:
        with collecting(automatic=self._collects):
            spans.enable()
            try:
                yield
            finally:
                spans.disable()

    def note(self, calls: int, *, only_traced: bool = False) -> int:
        """Take in the stretch that was just played; returns the ns that garbage was collected in it.

        What was slowed down by another profiler is only traced.
        """
        self._timeline.read_clock()
        events, laps = read_spans(self._timeline)
        steps = read_steps(self._batch, self._timeline) if self._batch is not None else None
        if self._by_laps:
            resets = self._resets_in(laps.given, steps)
            seen = table.calls_of_loop(laps, events, steps, resets)
        else:
            assert steps is not None, "a batch that is profiled logs its steps"
            seen = table.calls_of_batch(steps, events, self.end_ns)
        before, self.steps = self.steps, self.steps + calls
        check = (self.steps, fingerprint(self._subject))
        kept = [] if only_traced else self.keeper.add(seen, before, check)
        if len(seen):
            self.last_step = self.keeper.describe(seen, len(seen) - 1, before, check)
        self.keeper.missed += events.missed
        if self._tracer is not None:
            self._tracer.add(seen, events, steps, before, kept)
        self._plan(calls, events)
        return int(seen.gc.ns.sum())

    def _resets_in(self, counted: Any, steps: Steps | None) -> Any:
        """Episodes that began in each lap, as the subject counted them; a batch says it in its rows."""
        if self._subject.logs_itself and steps is not None:
            return steps.ended[: len(counted)]
        resets = np.diff(counted, prepend=self._resets)
        self._resets = self.counted.resets
        return resets

    def _plan(self, calls: int, events: Events) -> None:
        """Make the next stretch as long as the log has room for."""
        if self._by_laps and calls:
            per_call = (len(events.place) + events.missed) / calls + 1
            room = max(1, int(FILLED * EVENTS / per_call))
            self._room = room if self._batch is None else min(room, self._log_rows)

    def spreads(self) -> dict[str, Spread]:
        """How phases varied where no episode began; what only happens where one does, there."""
        return self.keeper.with_reset.spreads() | self.keeper.ordinary.spreads()

    def slow(self, target: Target, *, policy: str, journal: Journal) -> Slow:
        """What a record keeps of it."""
        keeper = self.keeper
        steps, resets, warmup = keeper.ranked()
        return Slow(
            relative_error=RELATIVE_ERROR,
            calls=keeper.calls,
            missed=keeper.missed,
            typical_ns=keeper.ordinary.typical_ns,
            typical_reset_ns=keeper.with_reset.typical_ns,
            steps=steps,
            resets=resets,
            warmup=warmup,
            reset_spreads=tuple(keeper.with_reset.spreads().values()),
            pauses=keeper.pauses,
            target=target.name,
            given={key: plain(value) for key, value in target.keys.items()},
            policy=policy,
            draws=journal.draws,
        )


class Warming(Proxy):
    """A subject that times each call and knows the slowest."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self.steps = 0
        self.slowest: list[tuple[int, int]] = []
        """ns and step of each, in the order of a heap."""

    def step(self, actions: Any) -> None:
        begin = now_ns()
        self._subject.step(actions)
        timed = (now_ns() - begin, self.steps + 1)
        self.steps += 1
        if len(self.slowest) < KEPT:
            heappush(self.slowest, timed)
        elif timed > self.slowest[0]:
            heappushpop(self.slowest, timed)


def fingerprint(subject: Subject) -> str:
    """What all envs gave back last, hashed; of our own worlds their whole state."""
    answers = subject.answers()
    hashed = 0
    for name in ["digest"] if "digest" in answers else sorted(answers):
        hashed = zlib.crc32(np.ascontiguousarray(answers[name]).tobytes(), hashed)
    return f"{hashed:08x}"


def plain(value: object) -> object:
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
