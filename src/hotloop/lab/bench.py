"""Bench: how fast a target steps, with its spread; every probe is off."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from hotloop.core.errors import Code, Notice, notice
from hotloop.core.progress import Progress, silent
from hotloop.core.record import CPU_SHARE, Method, Record
from hotloop.core.settings import Target
from hotloop.core.turn_clock import Turn
from hotloop.envs.foreign.single import FunctionSubject
from hotloop.envs.spec import Spec
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
from hotloop.lab.measure.loop import (
    NO_LIMIT,
    Length,
    Plan,
    Rounds,
    Samples,
    measure,
    shortened_notices,
    until_interrupted,
    warm_up_subjects,
)
from hotloop.lab.measure.policy import EXAMINED, RANDOM
from hotloop.lab.measure.record import (
    Recorder,
    both_validations,
    describe_validation,
    in_rounds,
    kept_so_far,
    play_digest,
    throughput,
)
from hotloop.lab.measure.resources import count
from hotloop.lab.measure.sides import Garbage, SubjectSide, no_collection
from hotloop.lab.measure.target import Opener
from hotloop.lab.profile import profile as profiling
from hotloop.options.bench import BenchOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What is asked for beside the speed."""

    label: str | None = None
    phases: bool = False  # Whether instrumented pairs follow the clean rounds, as in a profile
    instructions: bool = False
    wanted: Wanted | None = None
    baselines: tuple[Record, ...] = ()
    # Baselines whose code takes turns with this one's; their numbers are not compared
    rebuilt: tuple[Record, ...] = ()
    band: float = BAND
    garbage: Garbage = "between"


NOTHING = Extras()


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

    measured = with_comparisons(replace(once(), label=extras.label), extras.baselines, extras.band, once)
    changes = [each for baseline in extras.baselines for each in changes_between(baseline, measured)]
    measured = replace(measured, notices=(*measured.notices, *changes))
    if extras.phases and not measured.partial:
        plan = profiling.ProfilePlan(target=target, policy=policy, garbage=extras.garbage)
        profiled = profiling.measure(plan, progress)
        # The speed stays that of the clean rounds.
        metrics = {name: profiled.metrics[name] for name in profiling.WALLS if name in profiled.metrics}
        measured = replace(
            measured,
            partial=profiled.partial,
            values=measured.values | {name: profiled.values[name] for name in profiling.WALLS},
            metrics=measured.metrics | metrics,
            phases=profiled.phases,
            unaccounted_ns=profiled.unaccounted_ns,
            overhead=profiled.overhead,
            validation=both_validations(measured.validation, profiled.validation),
        )
    measured = replace(measured, goal=goal_of(measured, extras.wanted))
    if extras.instructions and not measured.partial:
        with until_interrupted() as state:
            measured = replace(measured, instructions=count(target, policy=policy, progress=progress))
        measured = replace(measured, partial=state.partial)
    return judge(measured)


def measure_once(
    subject: Subject, rounds: Rounds, progress: Progress, *, policy: str, extras: Extras
) -> Record:
    """Measure a subject and close it; refuses, before it steps, what it cannot be compared with."""
    opened = SubjectSide(subject.spec.name, subject, policy, alone=True)
    with closing(opened) as side, no_collection(extras.garbage):
        recorder, script = Recorder("bench", subject.spec), side.script
        for baseline in (*extras.baselines, *extras.rebuilt):
            check_alike(baseline, recorder.setting(script.policy, extras.garbage))
        if isinstance(subject, FunctionSubject):
            rounds = replace(rounds, of_function=True)
        digest = play_digest(subject) if policy == RANDOM else None
        subject.reset()
        samples, fitted = Samples({side.name: side}), rounds
        faults: tuple[Notice, ...] = ()

        def so_far() -> Record:
            method = in_rounds(subject.spec, fitted, script.policy, garbage=extras.garbage)
            notices = [*faults, *shortened_notices(rounds, fitted)]
            return record(side, recorder, replace(method, digest=digest), samples, notices)

        kept = kept_so_far(lambda: so_far() if samples.count else None, progress)
        with until_interrupted(samples):
            fitted = warm_up_subjects([subject], script, rounds, kept)
            plan = Plan(rounds=fitted.count, budget_ns=NO_LIMIT, length=Length(fitted.iterations))

            def moved(done: int, _: int) -> None:
                kept(fitted.warmup + done * fitted.iterations, fitted.env_steps)

            measure({side.name: side}, plan, moved, samples=samples)
            faults = subject.faults(None if script.policy == RANDOM else script.draw(EXAMINED))
        return so_far()


def wanted_of(options: BenchOptions) -> Wanted | None:
    """Return the speed that is to be reached."""
    goal = options.target_steps_per_sec
    return None if goal is None else Wanted(env_steps_per_s=goal, enforced=options.enforce_target)


def with_comparisons(
    first: Record, baselines: Sequence[Record], band: float, once: Callable[[], Record]
) -> Record:
    """Hold a finished run against its baselines; before it is faster or slower, all of it is done again."""
    if first.partial:
        return first
    compared = [compare_stored(baseline, first, band=band) for baseline in baselines]
    if not any(comparison.outcome in MOVED for comparison in compared):
        return replace(first, comparisons=tuple(compared))
    again = once()
    first = replace(first, validation=both_validations(first.validation, again.validation))
    if again.partial:
        return replace(first, partial=True)
    confirmed = tuple(
        confirm(comparison, compare_stored(baseline, again, band=band))
        if comparison.outcome in MOVED
        else comparison
        for baseline, comparison in zip(baselines, compared, strict=True)
    )
    return replace(first, comparisons=confirmed)


def record(
    side: SubjectSide, recorder: Recorder, method: Method, samples: Samples, notices: Sequence[Notice]
) -> Record:
    """Return the record of the rounds there were."""
    spec, gained = side.subject.spec, samples.work[side.name].gained
    turns = samples.turns[side.name][: samples.count]
    # Of a round, without the calls in which a vector env only resets an env.
    env_steps = gained["env_steps"] // max(len(turns), 1)
    speeds = throughput(spec, env_steps, [turn.ns for turn in turns], gained)
    return recorder.record(
        method=method,
        counters=gained,
        values={**speeds, CPU_SHARE: [turn.cpu_ns / turn.ns for turn in turns]},
        notices=[*notices, *background_notices(spec, turns)],
        partial=samples.partial,
        validation=describe_validation(side.subject.counters),
    )


def background_notices(spec: Spec, turns: Sequence[Turn]) -> list[Notice]:
    """Return what to say of CPU use by other threads and processes, if it is much or comes late."""
    cpu_ns = sum(turn.cpu_ns for turn in turns)
    own_ns = cpu_ns - sum(turn.children_ns + turn.late_ns for turn in turns)
    share = own_ns / max(sum(turn.ns for turn in turns), 1)
    late = sum(turn.late_ns for turn in turns) / max(cpu_ns, 1)
    notices = []
    if share > spec.threads + SPARE_CORES:
        notices.append(notice(Code.BACKGROUND, side=spec.name, share=share, threads=spec.threads))
    if late > LATE_SHARE:
        notices.append(notice(Code.LATE, side=spec.name, share=late))
    return notices
