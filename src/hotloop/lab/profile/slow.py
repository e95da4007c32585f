"""A watch over the instrumented side of a profile: every step call, and the slowest, in bounded memory."""

import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from heapq import heappush, heappushpop
from itertools import count, islice
from statistics import median
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hotloop.core import spans
from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.record.metadata import CodeInfo, own_commit
from hotloop.core.record.profile import WALL, Pauses, Repeated, RerunResult, Slow, SlowStep, Spread
from hotloop.core.settings import Target
from hotloop.core.spans import span
from hotloop.core.turn_clock import repeat
from hotloop.envs.subject import Proxy, Subject
from hotloop.judge.judge import judge
from hotloop.lab.measure.loop import until_interrupted
from hotloop.lab.measure.policy import (
    Actions,
    Journal,
    PolicySubject,
    RandomPlay,
    RecordingSubject,
    is_live,
    load,
    play_again,
    play_of,
)
from hotloop.lab.measure.record import Recorder, describe_method
from hotloop.lab.measure.sides import Resets, collecting, no_collection, play_in_laps
from hotloop.lab.measure.target import open_subject
from hotloop.lab.profile.calls import (
    HEAD,
    LOOP,
    Calls,
    Sample,
    Steps,
    Timeline,
    calls_of_batch,
    calls_of_loop,
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

LOADED_TIMES = 11

# How often the step is run: from the same saved state, or each time at the end of a fresh run.
FRESH_TIMES = 3

BUDGET_NS = 60_000_000_000  # After which no further fresh run is begun
NEAR = 1_000  # Steps before it whose median is what a step takes now

SAVED = "saved before the step and loaded again"

FRESH = "a fresh run each time"

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
        return {
            path: Spread(
                path=path,
                calls=histogram.count,
                p50_ns=histogram.percentile(0.50),
                p95_ns=histogram.percentile(0.95),
                p99_ns=histogram.percentile(0.99),
                max_ns=float(histogram.max),
            )
            for path, histogram in self._histograms.items()
        }

    @property
    def typical_ns(self) -> float | None:
        known = self._histograms.get(WALL)
        return known.percentile(0.50) if known else None


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
        pauses = self.pauses
        self.pauses = Pauses(
            collections=pauses.collections + len(calls.gc.ns),
            total_ns=pauses.total_ns + int(calls.gc.ns.sum()),
            longest_ns=max(pauses.longest_ns, int(calls.gc.ns.max(initial=0))),
        )
        kept: list[int] = []
        for kind, which in ((self.ordinary, calls.resets == 0), (self.with_reset, calls.resets > 0)):
            for sample in calls.samples:
                kind.count(sample, which)
            mine = np.flatnonzero(which)
            chosen: list[int] = mine[np.argsort(-calls.wall_ns[mine], kind="stable")[:KEPT]].tolist()
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


class CallWatch:
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
            seen = calls_of_loop(laps, events, steps, resets)
        else:
            assert steps is not None, "a batch that is profiled logs its steps"
            seen = calls_of_batch(steps, events, self.end_ns)
        before, self.steps = self.steps, self.steps + calls
        check = (self.steps, fingerprint(self._subject))
        kept = [] if only_traced else self.keeper.add(seen, before, check)
        if len(seen):
            self.last_step = self.keeper.describe(seen, len(seen) - 1, before, check)
        self.keeper.missed += events.missed
        if self._tracer is not None:
            self._tracer.add(seen, events, steps, before, kept)
        if self._by_laps and calls:
            # Make the next stretch as long as the log has room for.
            per_call = (len(events.place) + events.missed) / calls + 1
            room = max(1, int(FILLED * EVENTS / per_call))
            self._room = room if self._batch is None else min(room, self._log_rows)
        return int(seen.gc.ns.sum())

    def _resets_in(self, counted: Any, steps: Steps | None) -> Any:
        """Episodes that began in each lap, as the subject counted them; a batch says it in its rows."""
        if self._subject.logs_itself and steps is not None:
            return steps.ended[: len(counted)]
        resets = np.diff(counted, prepend=self._resets)
        self._resets = self.counted.resets
        return resets

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
            given={
                key: value if value is None or isinstance(value, (str, int, float)) else str(value)
                for key, value in target.keys.items()
            },
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


@dataclass(slots=True, kw_only=True)
class Rerun:
    """What was seen of the step so far."""

    wall_ns: list[int] = field(default_factory=list)
    gc_ns: list[int] = field(default_factory=list)
    phases: list[dict[str, int]] = field(default_factory=list)
    near_ns: list[float] = field(default_factory=list)  # The median of the steps before it, once a run
    same_way: bool | None = None
    how: str = FRESH
    counters: dict[str, int] = field(default_factory=dict)
    partial: bool = True

    @property
    def is_over(self) -> bool:
        return len(self.wall_ns) >= (LOADED_TIMES if self.how == SAVED else FRESH_TIMES)

    def note(self, watch: CallWatch) -> None:
        """Take in the step that the watch looked at last."""
        step = watch.last_step
        assert step is not None, "the watch has looked at it"
        self.wall_ns.append(step.wall_ns)
        self.gc_ns.append(step.gc_ns)
        self.phases.append(step.phases)


def find_slow_step(record: Record, rank: int) -> tuple[Slow, SlowStep]:
    """The slow step of a rank; InputError where the record has none."""
    if record.slow is None or record.kind != "profile":
        raise InputError(
            f"{record.run_id} keeps no slow steps: expected a record of hotloop profile, made by this version"
        )
    known = {step.rank: step for step in (*record.slow.steps, *record.slow.resets, *record.slow.warmup)}
    if not known:
        raise InputError(f"{record.run_id} was broken off before it saw a step: profile again, to the end")
    if rank not in known:
        raise InputError(f"there is no slow step #{rank}: {record.run_id} has #1 to #{max(known)}")
    return record.slow, known[rank]


def rerun(record: Record, rank: int = 1, progress: Progress = silent) -> Record:
    """Come to a slow step again and time it; Ctrl-C leaves a record of the times there were."""
    slow, step = find_slow_step(record, rank)
    attempt = Rerun()
    with ExitStack() as stack, no_collection() as collects:
        clean = stack.enter_context(closing(open_subject(slow.profiled_target, profile=False)))
        then, now = record.target, clean.spec.described
        if then.workload_hash != now.workload_hash:  # by an environment variable, for example
            changed = [f"{key}={value}" for key, value in then.params.items() if now.params.get(key) != value]
            had = ", ".join(changed) or "another workload"
            raise InputError(f"{then.name} is not what {record.run_id} ran: it had {had}")
        recorder = Recorder("replay", clean.spec)
        with until_interrupted(attempt):
            begin = now_ns()
            while not attempt.is_over and now_ns() - begin < BUDGET_NS:
                run_once(slow, step, attempt, progress, collects=collects)
        return judge(rerun_record(recorder, clean, record, step, attempt))


def run_once(slow: Slow, step: SlowStep, attempt: Rerun, progress: Progress, *, collects: bool) -> None:
    """Play up to the step, time it, and see whether the run came to the same."""
    live = is_live(slow.policy)
    with ExitStack() as stack:
        subject = stack.enter_context(closing(open_subject(slow.profiled_target, profile=True)))
        by_laps = not subject.logs_itself or live
        # A state can be put back if all of it is in the envs of a batch, and no policy remembers.
        times = LOADED_TIMES if subject.can_save and not live else 1
        attempt.how = SAVED if times > 1 else FRESH
        watch = stack.enter_context(CallWatch(subject, by_laps=by_laps, collects=collects))
        player: Subject = RecordingSubject(subject, keep=False) if by_laps else subject
        # The actions of the profile, as far as the state is compared.
        play = (
            RandomPlay(PolicySubject(subject, load(slow.policy))) if live else play_of(slow.policy, subject)
        )
        script = play_again(stack.enter_context(closing(play)), slow.draws, step.check_step)
        if live:
            player = PolicySubject(player, load(slow.policy, timed=True))
        subject.reset()
        warming = watch.warming(player)
        attempt.near_ns.append(step_until(warming, script, step.step - 1, progress))
        watch.begin()
        chosen = next(script)
        states = [subject.save(env) for env in range(subject.spec.num_envs)] if times > 1 else []
        for turn in range(times):
            for env, state in enumerate(states if turn else ()):
                subject.load(env, state)
            look(watch, player, chosen, by_laps=by_laps)
            attempt.note(watch)
        # Play on to where the profile looked at the state; one run that differs is enough.
        for actions in script:
            player.step(actions)
        attempt.same_way = fingerprint(subject) == step.check and attempt.same_way is not False
        attempt.counters = subject.counters


def step_until(subject: Subject, script: Iterator[Actions], calls: int, progress: Progress) -> float:
    """Play the steps before it; returns the median ns of the nearest."""
    near = np.zeros(NEAR, np.int64)
    for call in range(calls):
        chosen = next(script)
        begin = now_ns()
        subject.step(chosen)
        near[call % NEAR] = now_ns() - begin
        if call % NEAR == 0:
            progress(call, calls)
    return float(median(near[: min(calls, NEAR)].tolist())) if calls else 0.0


def look(watch: CallWatch, player: Subject, chosen: Actions, *, by_laps: bool) -> None:
    """Time the one step."""
    with watch.look():
        if by_laps:
            with span(LOOP):
                play_in_laps(player, [chosen], watch.counted)
        else:
            player.step(chosen)
    watch.note(1)


def rerun_record(recorder: Recorder, clean: Subject, of: Record, step: SlowStep, attempt: Rerun) -> Record:
    slow, spec = of.slow, clean.spec
    assert slow is not None, "`find_slow_step` found the step in it"
    typical_then = (slow.typical_reset_ns if step.resets else None) or slow.typical_ns or 0.0
    typical = float(median(attempt.near_ns)) if attempt.near_ns else 0.0
    setting = recorder.setting(of.method.policy)
    beyond = [ns - typical for ns in attempt.wall_ns]
    order = sorted(range(len(attempt.wall_ns)), key=attempt.wall_ns.__getitem__)
    again = RerunResult(
        run_id=of.run_id,
        slow=step,
        typical_ns=typical,
        typical_then_ns=typical_then,
        wall_ns=tuple(attempt.wall_ns),
        gc_ns=tuple(attempt.gc_ns),
        phases=attempt.phases[order[len(order) // 2]] if order else {},
        how=attempt.how,
        same_way=attempt.same_way,
        unlike=tuple(unlike(of, setting.machine, recorder.code)),
        outcome=repeated(step.wall_ns - typical_then, beyond, attempt.same_way),
    )
    return recorder.record(
        method=describe_method(
            spec,
            rounds=len(attempt.wall_ns),
            iterations=spec.num_envs,
            policy=of.method.policy,
            warmup=(step.step - 1) * spec.num_envs,
        ),
        counters=attempt.counters,
        values={"slow_step_ns": attempt.wall_ns},
        notices=() if attempt.partial else clean.faults(),
        again=again,
        partial=attempt.partial,
    )


def repeated(excess_ns: float, again_ns: Sequence[float], same_way: bool | None) -> Repeated:
    """Slow again: half of what it took beyond a usual step, or more, is there again."""
    if not again_ns or same_way is False or excess_ns <= 0:
        return "cannot tell"
    return "slow again" if median(again_ns) >= excess_ns / 2 else "not slow again"


def unlike(of: Record, machine: Any, code: CodeInfo) -> Iterator[str]:
    """What a reader must know before comparing the two times."""
    if of.machine["fingerprint"] != machine["fingerprint"]:
        yield f"another machine: {of.machine['cpu']} then, {machine['cpu']} now"
    for part in ("version", "commit"):
        if of.code[part] != code[part]:
            yield f"another {part}: {of.code[part][:12]} then, {code[part][:12]} now"
    (then, was_dirty), (now, is_dirty) = own_commit(of.code), own_commit(code)
    if "project" in code and then != now:
        yield f"another commit of the target: {then[:12]} then, {now[:12]} now"
    if of.code["dirty"] or code["dirty"] or was_dirty or is_dirty:
        yield "code that was not committed"
