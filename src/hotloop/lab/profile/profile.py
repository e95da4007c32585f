"""Profile: where the time of a step goes, and what looking at it cost.

Two batches of one seed play the same actions, one with the instrument and one without, in pairs whose
order alternates. Throughput comes from the clean one, phases from the other.
"""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hotloop.core import spans
from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError, SetupError
from hotloop.core.notices import Code, Notice, notice
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record, Slow
from hotloop.core.spans import span
from hotloop.core.target import Target
from hotloop.envs import tapes
from hotloop.envs.batch import Batch
from hotloop.envs.foreign.functions import Function, find, watching
from hotloop.envs.foreign.vector import SLOWEST, WAIT
from hotloop.envs.subject import Subject
from hotloop.judge.judge import judge
from hotloop.lab.measure.policy import (
    RANDOM,
    Actor,
    Journal,
    Play,
    RandomPlay,
    Watched,
    is_live,
    load,
    name_of,
    play_of,
)
from hotloop.lab.measure.record import Recorder, in_rounds, overhead, throughput
from hotloop.lab.measure.rounds import Rounds, calls_for, shortened, warm_up
from hotloop.lab.measure.stepping import Actions, no_collection, play, play_in_laps
from hotloop.lab.measure.target import Opener, open_batch, open_subject
from hotloop.lab.measure.work import Tally, both_validations, describe_validation
from hotloop.lab.profile import trace
from hotloop.lab.profile.trace import Tracer
from hotloop.lab.profile.tree import LOOP, Timing, Tree
from hotloop.lab.profile.watch import Watch

WALLS = ("clean_wall_ns", "instrumented_wall_ns")
"""The times of each pair, as a record's values name them."""

PAIRS = 20

STEPS = 200_000

WARMUP = 50_000

WAITING_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The two batches that do the same work."""

    clean: Subject
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
    target: Target,
    steps: int | None = None,
    progress: Progress = silent,
    *,
    policy: object = RANDOM,
    time: Sequence[str] = (),
    tape: Path | None = None,
    tracer: Tracer | None = None,
    opener: Opener | None = None,
) -> Record:
    """Profile a target under a policy's play; Ctrl-C leaves a record of the pairs there were.

    `time` names functions to look at; `tape` is a file for the actions that were played; `tracer` is given
    sampled steps; `opener` may have the clean side open already, and has it again after.
    """
    asked = plan(steps)
    opening = opener or Opener()
    clean = opening.open(target)
    try:
        if not (target.is_foreign or is_live(policy) or time or tape):
            return profile_batch(target, asked, progress, clean=clean, policy=str(policy), tracer=tracer)
        functions = [find(name, home_of(target.name)) for name in time]
        watched = open_subject(target, profile=True)
        looked_at: dict[str, Any] = {"policy": policy, "functions": functions, "tape": tape, "tracer": tracer}
        return look(Asked(clean=clean, watched=watched, target=target, **looked_at), asked, progress)
    finally:
        opening.keep(target, clean)
        if opener is None:
            opening.close()


def home_of(target: str) -> str | None:
    """The module of a callable, in which the names of its functions need no prefix."""
    place = target.rpartition(":")[0]
    return Path(place).stem if place.endswith(".py") else place or None


def profile_batch(
    target: Target,
    asked: Rounds,
    progress: Progress,
    *,
    clean: Subject,
    policy: str,
    tracer: Tracer | None,
) -> Record:
    """Look into the steps of one of our worlds, phase by phase."""
    with (
        closing(open_batch(target, profile=True)) as instrumented,
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
        slow = watch.slow(target, policy=policy, journal=script)
        return judge(record(sides, recorder, asked, found, script.policy, slow))


def with_phases(
    measured: Record, target: Target, progress: Progress = silent, *, policy: str = RANDOM
) -> Record:
    """Add the phases and what the instrument cost to a record of clean rounds; its speed stays theirs."""
    profiled = profile(target, progress=progress, policy=policy)
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
            **throughput(sides.clean.spec, found.rounds.iterations, found.clean_ns, found.work.gained),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be looked at."""

    clean: Subject
    """Who opened it closes it."""
    watched: Subject
    target: Target
    """What both were opened as."""
    policy: object
    """The name of a player, `tape:FILE`, or a callable or its name."""
    functions: Sequence[Function] = ()
    tape: Path | None = None
    """Where to write the actions that were played."""
    tracer: Tracer | None = None
    """Who is given sampled steps."""


@dataclass(slots=True, kw_only=True)
class LoopFindings:
    """What is known so far, complete up to the last whole pair."""

    rounds: Rounds
    work: Tally
    tree: Tree
    pairs: list[tuple[int, int]] = field(default_factory=list)
    """Clean and watched ns."""
    paused_ns: list[int] = field(default_factory=list)
    """Collecting garbage, in the watched pass of each pair."""
    steps: list[dict[str, int]] = field(default_factory=list)
    """What the clean side counted in each pair."""
    faults: tuple[Notice, ...] = ()
    """Of the env, looked for after the last pair."""
    partial: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """The two sides and who plays them."""

    clean: Subject
    watched: Subject
    watch: Watch
    script: Journal
    policy: str
    played: list[Any]
    """What the watched side has played since its reset, where it is kept."""


def look(asked: Asked, rounds: Rounds, progress: Progress = silent) -> Record:
    """Profile a loop; Ctrl-C leaves a record of the pairs there were."""
    with ExitStack() as stack:
        collects = stack.enter_context(no_collection())
        sides = cast(asked, stack, collects=collects)
        recorder = Recorder("profile", sides.clean.spec)
        sides.clean.reset()
        sides.watched.reset()
        found = LoopFindings(
            rounds=rounds, work=Tally(lambda: sides.clean.counters), tree=Tree(asked.watched)
        )
        try:
            measure_loop(sides, asked, found, progress)
            trace_torch(sides, asked)
            found.faults = asked.clean.faults()
        except KeyboardInterrupt:
            found.partial = True
        if asked.tape:
            tapes.write_played(asked.tape, asked.watched, sides.played)
        return judge(write_up(sides, asked, recorder, rounds, found))


def cast(asked: Asked, stack: ExitStack, *, collects: bool) -> Cast:
    """Who plays: a policy inside the loop, or actions that are there before it."""
    stack.enter_context(closing(asked.watched))
    watch = stack.enter_context(Watch(asked.watched, by_laps=True, collects=collects, tracer=asked.tracer))
    watched = Watched(asked.watched, keep=asked.tape is not None)
    both: dict[str, Any] = {"watch": watch, "played": watched.played}
    if is_live(asked.policy):
        clean = Actor(asked.clean, load(asked.policy))
        acting = Actor(watched, load(asked.policy, timed=True))
        name, idle = f"{name_of(asked.policy)} (live)", Journal(RandomPlay(clean))
        return Cast(clean=clean, watched=acting, script=idle, policy=name, **both)
    script = stack.enter_context(closing(Journal(play_of(str(asked.policy), asked.clean))))
    return Cast(clean=asked.clean, watched=watched, script=script, policy=script.policy, **both)


def measure_loop(sides: Cast, asked: Asked, found: LoopFindings, progress: Progress) -> None:
    """Warm both up, then time them pair by pair in alternating order."""
    clean, script = sides.clean, sides.script
    rounds = found.rounds = warm_up(
        [clean, sides.watch.warming(sides.watched)], script, found.rounds, progress
    )
    calls = calls_for(rounds.iterations, clean)
    sides.watch.begin()
    found.work.begin()
    while len(found.pairs) < rounds.count:
        before, actions = clean.counters, script.draw(calls)
        flipped = len(found.pairs) % 2 == 1
        first = observe(sides, actions, calls, asked, found.tree) if flipped else None
        clean_ns = play(clean, actions, calls)
        watched_ns, paused_ns = first or observe(sides, actions, calls, asked, found.tree)
        found.pairs.append((clean_ns, watched_ns))
        found.paused_ns.append(paused_ns)
        found.steps.append({name: count - before[name] for name, count in clean.counters.items()})
        found.work.note()
        progress(rounds.warmup + len(found.pairs) * rounds.iterations, rounds.env_steps)
    found.partial = False


def observe(sides: Cast, actions: Sequence[Actions], calls: int, asked: Asked, tree: Tree) -> tuple[int, int]:
    """Run the watched side with spans on; returns the ns of the loop, and those of collecting garbage."""
    ns = paused_ns = 0
    for part in sides.watch.stretches(actions, calls):
        native = asked.watched.phase_totals()
        with watching(asked.functions), sides.watch.look():
            begin = now_ns()
            with span(LOOP):
                ns += play_in_laps(sides.watched, part, sides.watch.counted)
            wall_ns = now_ns() - begin
        tree.add(spans.tree(), wall_ns, len(part), native)
        paused_ns += sides.watch.note(len(part))
    return ns, paused_ns


def trace_torch(sides: Cast, asked: Asked) -> None:
    """Play some more calls for a trace alone, where a policy in the loop uses torch."""

    def play_one() -> None:
        with sides.watch.look(), span(LOOP):
            play_in_laps(sides.watched, [None], sides.watch.counted)
        sides.watch.note(1, only_traced=True)

    if asked.tracer and is_live(asked.policy) and trace.has_torch():
        trace.watch_torch(play_one, asked.tracer)


def write_up(sides: Cast, asked: Asked, recorder: Recorder, planned: Rounds, found: LoopFindings) -> Record:
    tree = found.tree
    rows = tree.rows(sides.watch.spreads()) if found.pairs else ()
    tables = {"phases": rows, "unaccounted_ns": tree.unaccounted_ns} if found.pairs else {}
    return recorder.record(
        method=in_rounds(sides.clean.spec, found.rounds, sides.policy, order="ABBA"),
        counters=found.work.gained,
        values={
            **speeds(found),
            "clean_wall_ns": [clean for clean, _ in found.pairs],
            "instrumented_wall_ns": [watched for _, watched in found.pairs],
        },
        notices=[*found.faults, *shortened(planned, found.rounds), *remarks(asked, tree)],
        partial=found.partial,
        overhead=overhead(found.pairs, found.paused_ns, spans.mark_cost_ns()),
        slow=sides.watch.slow(
            asked.target,
            policy=name_of(asked.policy),
            journal=sides.script,
        ),
        **tables,
    )


def speeds(found: LoopFindings) -> dict[str, list[float]]:
    """The speed of each clean turn, from the work it counted: a call that only resets an env is no step."""
    turns = [(clean_ns, steps) for (clean_ns, _), steps in zip(found.pairs, found.steps, strict=True)]
    return {
        f"{what}_per_s": [steps[what] * 1e9 / ns for ns, steps in turns]
        for what in ("env_steps", "agent_steps")
    }


def remarks(asked: Asked, tree: Tree) -> list[Notice]:
    """What was waited for, and what was named and never called."""
    said = [
        notice(Code.NEVER_CALLED, function=function.name)
        for function in asked.functions
        if tree.wall_ns and not tree.has(function.name)
    ]
    workers = asked.watched.workers
    waited = tree.share(WAIT)
    if workers is not None and waited > WAITING_SHARE:
        worker, last = workers.slowest
        skew = tree.share(SLOWEST)
        said.append(notice(Code.WAITING, share=waited, skew=skew, worker=f"worker {worker}", last=last))
    return said
