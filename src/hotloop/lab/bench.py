"""Bench: how fast a target steps, with its spread; every probe is off."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial

from hotloop.core.notices import Code, Notice, notice
from hotloop.core.progress import Progress, silent
from hotloop.core.record.comparison import Comparison
from hotloop.core.record.record import CPU_SHARE, Method, Record
from hotloop.core.target import Target
from hotloop.core.turn_clock import Stretch, TurnClock
from hotloop.envs.foreign.kinds.model import FunctionSubject
from hotloop.envs.subject import Subject
from hotloop.judge.compare import (
    BAND,
    LATE_SHARE,
    MOVED,
    SPARE_CORES,
    changes_between,
    check_alike,
    compare_stored,
    confirm,
)
from hotloop.judge.judge import Wanted, goal_of, judge
from hotloop.lab.measure.digest import play_digest
from hotloop.lab.measure.instructions import counted
from hotloop.lab.measure.policy import EXAMINED, RANDOM, Play, play_of
from hotloop.lab.measure.record import Recorder, in_rounds, kept_so_far, throughput
from hotloop.lab.measure.rounds import Rounds, calls_for, shortened, warm_up
from hotloop.lab.measure.stepping import Garbage, collect_rest, no_collection, play
from hotloop.lab.measure.target import Opener
from hotloop.lab.measure.work import Tally, both_validations, describe_validation
from hotloop.lab.profile import profile as profiling
from hotloop.lab.profile.record import WALLS


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What is asked for beside the speed."""

    label: str | None = None
    phases: bool = False
    """Whether instrumented pairs follow the clean rounds, as in a profile."""
    instructions: bool = False
    wanted: Wanted | None = None
    baselines: tuple[Record, ...] = ()
    rebuilt: tuple[Record, ...] = ()
    """Baselines whose code takes turns with this one's; their numbers are not compared."""
    band: float = BAND
    garbage: Garbage = "between"


NOTHING = Extras()


@dataclass(slots=True, kw_only=True)
class SoFar:
    """What is known so far, complete up to the last whole round."""

    rounds: Rounds
    work: Tally
    taken: list[Stretch] = field(default_factory=list)
    """One a round."""
    faults: tuple[Notice, ...] = ()
    """Of the env, looked for after the last round."""
    partial: bool = True

    @property
    def cpu_shares(self) -> list[float]:
        """CPU time over wall time of each round; 2.0 is two cores busy."""
        return [each.cpu_ns / each.ns for each in self.taken]


def bench(
    target: Target,
    rounds: Rounds,
    progress: Progress = silent,
    *,
    policy: str = RANDOM,
    extras: Extras = NOTHING,
    opener: Opener | None = None,
) -> Record:
    """Measure a target under a policy's play; Ctrl-C leaves a record of the rounds there were.

    `opener` may have it open already.
    """
    opening = opener or Opener()

    def once() -> Record:
        subject = opening.open(target)
        return measure_once(subject, rounds, progress, policy=policy, extras=extras)

    measured = with_comparisons(replace(once(), label=extras.label), extras, once)
    changes = [each for baseline in extras.baselines for each in changes_between(baseline, measured)]
    measured = replace(measured, notices=(*measured.notices, *changes))
    if extras.phases and not measured.partial:
        measured = with_phases(measured, target, progress, policy=policy, garbage=extras.garbage)
    measured = replace(measured, goal=goal_of(measured, extras.wanted))
    if extras.instructions:
        measured = counted(measured, target, progress, policy=policy)
    return judge(measured)


def measure_once(
    subject: Subject, rounds: Rounds, progress: Progress, *, policy: str, extras: Extras
) -> Record:
    """Measure a subject and close it; refuses, before it steps, what it cannot be compared with."""
    with (
        closing(subject),
        closing(play_of(policy, subject)) as script,
        no_collection(extras.garbage),
    ):
        recorder = Recorder("bench", subject.spec)
        for baseline in (*extras.baselines, *extras.rebuilt):
            check_alike(baseline, recorder.setting(script.policy, extras.garbage))
        if isinstance(subject, FunctionSubject):
            rounds = replace(rounds, of_function=True)
        digest = play_digest(subject) if policy == RANDOM else None
        subject.reset()
        found = SoFar(rounds=rounds, work=Tally(lambda: subject.counters))

        def so_far() -> Record:
            method = replace(in_rounds_of(subject, found, script, extras), digest=digest)
            return record(subject, recorder, rounds, found, method)

        try:
            measure(subject, script, found, kept_so_far(lambda: so_far() if found.taken else None, progress))
        except KeyboardInterrupt:
            found.partial = True
        return so_far()


def with_comparisons(first: Record, extras: Extras, once: Callable[[], Record]) -> Record:
    """Hold a finished run against its baselines; before it is faster or slower, all of it is done again."""
    if first.partial:
        return first
    compared = [compare_stored(baseline, first, band=extras.band) for baseline in extras.baselines]
    if not any(comparison.outcome in MOVED for comparison in compared):
        return replace(first, comparisons=tuple(compared))
    again = once()
    first = replace(first, validation=both_validations(first.validation, again.validation))
    if again.partial:
        return replace(first, partial=True)
    return replace(first, comparisons=confirmed(compared, extras, again))


def confirmed(compared: Sequence[Comparison], extras: Extras, again: Record) -> tuple[Comparison, ...]:
    """The comparisons, those that say faster or slower held against the second run."""
    return tuple(
        confirm(comparison, compare_stored(baseline, again, band=extras.band))
        if comparison.outcome in MOVED
        else comparison
        for baseline, comparison in zip(extras.baselines, compared, strict=True)
    )


def with_phases(
    measured: Record, target: Target, progress: Progress, *, policy: str, garbage: Garbage
) -> Record:
    """Add the phases and what the instrument cost to a record of clean rounds; its speed stays theirs."""
    asked = profiling.Asked(target=target, policy=policy, garbage=garbage)
    profiled = profiling.measure(asked, progress)
    pairs = {name: profiled.values[name] for name in WALLS}
    return replace(
        measured,
        partial=profiled.partial,
        values=measured.values | pairs,
        metrics=measured.metrics
        | {name: profiled.metrics[name] for name in WALLS if name in profiled.metrics},
        phases=profiled.phases,
        unaccounted_ns=profiled.unaccounted_ns,
        overhead=profiled.overhead,
        validation=both_validations(measured.validation, profiled.validation),
    )


def measure(subject: Subject, script: Play, found: SoFar, progress: Progress) -> None:
    """Warm up, then time one round after another, each with fresh actions."""
    rounds = found.rounds = warm_up([subject], script, found.rounds, progress)
    calls = calls_for(rounds.iterations, subject)
    clock = TurnClock()
    found.work.begin()
    while len(found.taken) < rounds.count:
        collect_rest()
        found.taken.append(clock.time(partial(play, subject, script.draw(calls), calls)))
        found.work.note()
        progress(rounds.warmup + len(found.taken) * rounds.iterations, rounds.env_steps)
    found.partial = False
    found.faults = subject.faults(None if script.policy == RANDOM else script.draw(EXAMINED))


def in_rounds_of(subject: Subject, found: SoFar, script: Play, extras: Extras) -> Method:
    return in_rounds(subject.spec, found.rounds, script.policy, garbage=extras.garbage)


def record(subject: Subject, recorder: Recorder, asked: Rounds, found: SoFar, method: Method) -> Record:
    # Of a round, without the calls in which a vector env only resets an env.
    env_steps = found.work.gained["env_steps"] // max(len(found.taken), 1)
    speeds = throughput(subject.spec, env_steps, [each.ns for each in found.taken], found.work.gained)
    return recorder.record(
        method=method,
        counters=found.work.gained,
        values={**speeds, CPU_SHARE: found.cpu_shares},
        notices=[*found.faults, *shortened(asked, found.rounds), *beside(subject, found)],
        partial=found.partial,
        validation=describe_validation(subject.counters),
    )


def beside(subject: Subject, found: SoFar) -> list[Notice]:
    """What goes on beside the loop, where that is much or comes late."""
    threads, cpu_ns = subject.spec.threads, sum(each.cpu_ns for each in found.taken)
    own_ns = cpu_ns - sum(each.children_ns + each.late_ns for each in found.taken)
    share = own_ns / max(sum(each.ns for each in found.taken), 1)
    late = sum(each.late_ns for each in found.taken) / max(cpu_ns, 1)
    said = []
    if share > threads + SPARE_CORES:
        said.append(notice(Code.BACKGROUND, side=subject.spec.name, share=share, threads=threads))
    if late > LATE_SHARE:
        said.append(notice(Code.LATE, side=subject.spec.name, share=late))
    return said
