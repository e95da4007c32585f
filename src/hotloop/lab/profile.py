"""Profile: where the time of a step goes, and what looking at it cost.

Two batches of one seed play the same actions, one with the instrument and one without, in pairs whose
order alternates. Throughput comes from the clean one, phases from the other.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hotloop.core.errors import InputError, SetupError
from hotloop.core.record import Record
from hotloop.core.registry import names_callable
from hotloop.core.slow import Slow
from hotloop.envs.batch import Batch
from hotloop.envs.foreign.functions import find
from hotloop.envs.subject import Subject
from hotloop.lab import lens
from hotloop.lab.account import Tally, both_validations, describe_validation
from hotloop.lab.acting import is_live
from hotloop.lab.journal import Journal
from hotloop.lab.judge import judge
from hotloop.lab.opening import Given, open_batch, open_subject
from hotloop.lab.phases import Timing
from hotloop.lab.play import RANDOM, Actions, Play, no_collection, play, play_of
from hotloop.lab.progress import Progress, silent
from hotloop.lab.recording import Recorder, in_rounds, overhead, throughput
from hotloop.lab.rounds import Rounds, calls_for, shortened, warm_up
from hotloop.lab.tracing import Tracer
from hotloop.lab.watch import Watch

WALLS = ("clean_wall_ns", "instrumented_wall_ns")
"""The times of each pair, as a record's values name them."""
PAIRS = 20
STEPS = 200_000
WARMUP = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The two batches that do the same work."""

    clean: Batch
    instrumented: Batch
    watch: Watch

    def reset(self) -> None:
        self.clean.reset()
        self.instrumented.reset()

    @property
    def to_warm(self) -> tuple[Subject, Subject]:
        return self.clean, self.watch.warming(self.instrumented)

    def pair(self, actions: Sequence[Actions], calls: int, *, flipped: bool) -> tuple[int, int, int]:
        """Time both sides once, close together; returns the ns of the clean and of the instrumented one.

        The third is what the instrumented one spent on collecting garbage.
        """
        if flipped:
            watched = self.look(actions, calls)
            return play(self.clean, actions, calls), *watched
        return play(self.clean, actions, calls), *self.look(actions, calls)

    def look(self, actions: Sequence[Actions], calls: int) -> tuple[int, int]:
        """Play the instrumented side call by call under the watch."""
        wall_ns = paused_ns = 0
        for part in self.watch.stretches(actions, calls):
            with self.watch.look():
                wall_ns += play(self.instrumented, part, len(part))
            paused_ns += self.watch.note(len(part))
        return wall_ns, paused_ns

    def work(self) -> dict[str, int]:
        """The counters of either side; they differ only if the instrument changed what was done."""
        clean, instrumented = self.clean.counters, self.instrumented.counters
        if clean != instrumented:
            different = sorted(name for name in clean if clean[name] != instrumented.get(name))
            raise SetupError(
                f"profiling changed the work done ({', '.join(different)}): this is a bug, report it"
            )
        return clean


@dataclass(slots=True, kw_only=True)
class Findings:
    """What is known so far, complete up to the last whole pair."""

    rounds: Rounds
    work: Tally
    times: Tally
    pairs: list[tuple[int, int]] = field(default_factory=list)
    paused_ns: list[int] = field(default_factory=list)
    """Collecting garbage, in the instrumented pass of each pair."""
    partial: bool = True

    @property
    def clean_ns(self) -> list[int]:
        return [clean for clean, _ in self.pairs]

    @property
    def instrumented_ns(self) -> list[int]:
        return [instrumented for _, instrumented in self.pairs]


def profile(
    target: str,
    given: Given,
    steps: int | None = None,
    progress: Progress = silent,
    *,
    policy: object = RANDOM,
    time: Sequence[str] = (),
    tape: Path | None = None,
    tracer: Tracer | None = None,
) -> Record:
    """Profile a target under a policy's play; Ctrl-C leaves a record of the pairs there were.

    `time` names functions to look at; `tape` is a file for the actions that were played; `tracer` is given
    sampled steps.
    """
    asked = plan(steps)
    if names_callable(target) or is_live(policy) or time or tape:
        looked_at: dict[str, Any] = {"policy": policy, "time": time, "tape": tape, "tracer": tracer}
        return profile_loop(target, given, asked, progress, **looked_at)
    return profile_batch(target, given, asked, progress, policy=str(policy), tracer=tracer)


def profile_loop(
    target: str,
    given: Given,
    asked: Rounds,
    progress: Progress,
    *,
    policy: object,
    time: Sequence[str],
    tape: Path | None,
    tracer: Tracer | None,
) -> Record:
    """Look at the loop around somebody's environment, or one of ours."""
    clean = open_subject(target, given, profile=False)
    watched = open_subject(target, given, profile=True)
    functions = [find(name, home_of(target)) for name in time]
    sides = lens.Asked(
        clean=clean,
        watched=watched,
        given=given,
        policy=policy,
        functions=functions,
        tape=tape,
        tracer=tracer,
    )
    return lens.look(sides, asked, progress)


def home_of(target: str) -> str | None:
    """The module of a callable, in which the names of its functions need no prefix."""
    place = target.rpartition(":")[0]
    return Path(place).stem if place.endswith(".py") else place or None


def profile_batch(
    target: str, given: Given, asked: Rounds, progress: Progress, *, policy: str, tracer: Tracer | None
) -> Record:
    """Look into the steps of one of our worlds, phase by phase."""
    with (
        closing(open_batch(target, given, profile=False)) as clean,
        closing(open_batch(target, given, profile=True)) as instrumented,
        closing(Journal(play_of(policy, clean))) as script,
        no_collection() as collects,
        Watch(instrumented, by_laps=False, collects=collects, tracer=tracer) as watch,
    ):
        sides = Sides(clean=clean, instrumented=instrumented, watch=watch)
        recorder = Recorder("profile", clean.spec)
        sides.reset()
        found = Findings(rounds=asked, work=Tally(sides.work), times=Tally(instrumented.phase_totals))
        try:
            measure(sides, script, found, progress)
        except KeyboardInterrupt:
            found.partial = True
        slow = watch.slow(target=target, given=given, policy=policy, journal=script)
        return judge(record(sides, recorder, asked, found, script.policy, slow))


def with_phases(
    measured: Record, target: str, given: Given, progress: Progress = silent, *, policy: str = RANDOM
) -> Record:
    """Add the phases and what the instrument cost to a record of clean rounds; its speed stays theirs."""
    profiled = profile(target, given, progress=progress, policy=policy)
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


def plan(steps: int | None) -> Rounds:
    """Split a number of env-steps, the same for each side, into pairs; None is the usual number."""
    if steps is not None and steps < 1:
        raise InputError(f"steps is {steps}: expected at least 1")
    iterations = -(-(steps or STEPS) // PAIRS)
    return Rounds(count=PAIRS, iterations=iterations, warmup=WARMUP, box_iterations=steps is None)


def measure(sides: Sides, script: Play, found: Findings, progress: Progress) -> None:
    """Warm both sides up, then time them pair by pair."""
    rounds = found.rounds = warm_up(sides.to_warm, script, found.rounds, progress)
    calls = calls_for(rounds.iterations, sides.clean)
    sides.watch.begin()
    found.work.begin()
    found.times.begin()
    while len(found.pairs) < rounds.count:
        flipped = len(found.pairs) % 2 == 1
        clean_ns, instrumented_ns, paused_ns = sides.pair(script.draw(calls), calls, flipped=flipped)
        found.pairs.append((clean_ns, instrumented_ns))
        found.paused_ns.append(paused_ns)
        found.work.note()
        found.times.note()
        progress(rounds.warmup + len(found.pairs) * rounds.iterations, rounds.env_steps)
    found.partial = False


def record(
    sides: Sides, recorder: Recorder, asked: Rounds, found: Findings, policy: str, slow: Slow
) -> Record:
    return recorder.record(
        method=in_rounds(sides.clean.spec, found.rounds, policy, order="ABBA"),
        counters=found.work.gained,
        values={
            **throughput(sides.clean.spec, found.rounds.iterations, found.clean_ns),
            **dict(zip(WALLS, (found.clean_ns, found.instrumented_ns), strict=True)),
        },
        notices=shortened(asked, found.rounds),
        partial=found.partial,
        overhead=overhead(found.pairs, found.paused_ns, sides.instrumented.mark_ns),
        slow=slow,
        validation=describe_validation(sides.clean.counters),
        **phases(sides, found),
    )


def phases(sides: Sides, found: Findings) -> dict[str, Any]:
    """The account of the instrumented passes; none where no pair was finished."""
    if not found.pairs:
        return {}
    settings = sides.instrumented.spec.settings
    timing = Timing(
        wall_ns=sum(found.instrumented_ns),
        times=found.times.gained,
        env_steps=found.work.gained["env_steps"],
        threads=settings.threads,
        spreads=sides.watch.spreads(),
        num_envs=settings.num_envs,
    )
    return {"phases": timing.rows(), "unaccounted_ns": timing.unaccounted_ns}
