"""Profile: where the time of a step goes, and what looking at it cost.

Two of a target play the same actions, one watched and one clean, in pairs whose order alternates.
Throughput comes from the clean one, the account of the time from the other. What is asked for beside that
follows: the profile before is compared with, and each probe looks in a pass of its own.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hotloop.core import registry, spans
from hotloop.core.clock import now_ns
from hotloop.core.errors import Code, InputError, Notice, notice
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.record.profile import PYTHON, Overhead, Phase, Spread, describe_times
from hotloop.core.registry import Probe
from hotloop.core.settings import Target
from hotloop.core.spans import glance, span
from hotloop.core.time_tree import TimeTree, add
from hotloop.core.turn_clock import Turn, timed
from hotloop.envs import tapes
from hotloop.envs.batch import Batch
from hotloop.envs.foreign.phases import Function, find, home_of, watching
from hotloop.envs.foreign.vector import SLOWEST, WAIT
from hotloop.envs.open import extra_ns
from hotloop.envs.subject import Subject
from hotloop.judge.baselines import latest_profile, with_previous
from hotloop.judge.judge import judge
from hotloop.lab.loop.record import cuda_runs
from hotloop.lab.measure import loop
from hotloop.lab.measure.loop import (
    NO_LIMIT,
    Length,
    Plan,
    Rounds,
    Samples,
    Tally,
    shortened_notices,
    until_interrupted,
    warm_up_subjects,
)
from hotloop.lab.measure.policy import (
    EXAMINED,
    RANDOM,
    Actions,
    Journal,
    PolicySubject,
    RandomPlay,
    RecordingSubject,
    is_live,
    load,
    name_of,
    play_of,
)
from hotloop.lab.measure.record import (
    Recorder,
    describe_validation,
    in_rounds,
    kept_so_far,
    overhead,
    refuse_other_work,
)
from hotloop.lab.measure.sides import Garbage, Glancing, Side, calls_for, no_collection, play, play_in_laps
from hotloop.lab.measure.target import Opener
from hotloop.lab.profile import probes as probing
from hotloop.lab.profile import trace
from hotloop.lab.profile.calls import LOOP, loop_times, of_env_step, step_times
from hotloop.lab.profile.probes import Picture, no_picture
from hotloop.lab.profile.slow import CallWatch
from hotloop.lab.profile.trace import Tracer
from hotloop.lab.sim.games import counted_games, rounds_for_games, with_games
from hotloop.lab.sim.seated import Seated, is_seated
from hotloop.stats.summary import FEWEST

PAIRS = 20

STEPS = 200_000

WARMUP = 50_000

MOST_PAIRS = 20 * PAIRS  # Pairs that are played for games that do not end

MOST_STEPS = 10**12  # Upper limit for steps; larger values are typing errors

CLEAN, WATCHED = "clean", "watched"

WALLS = ("clean_wall_ns", "instrumented_wall_ns")  # The times of each pair, as a record's values name them

WAITING_SHARE = 0.05

UNEVEN_SHARE = 0.25  # Of the waiting, from which on it is the slowest worker's doing


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilePlan:
    """What is profiled, how it is played, and what follows."""

    target: Target
    # May have the clean side open already, and has it again after.
    opener: Opener = field(default_factory=Opener)
    steps: int | None = None
    warmup: int | None = None  # Env-steps before the first pair, at most; None is the usual number
    policy: object = RANDOM  # The name of a player, `tape:FILE`, or a callable or its name
    time: tuple[str, ...] = ()  # Functions to look at
    tape: Path | None = None  # Where to write the actions that were played
    tracer: Tracer | None = None  # Is given sampled steps
    garbage: Garbage = "between"
    # Whole games to count at least, of a target whose seats have players; None is by steps.
    games: int | None = None
    probes: tuple[Probe, ...] = ()
    baselines: Path | None = None  # A folder of profiles: the latest of the target is compared with
    files: Path | None = None  # Where the probes' files go; None keeps none
    picture: Picture = no_picture

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the functions that get rows: those asked for, and those of the target."""
        return tuple(dict.fromkeys((*self.time, *self.target.time)))

    @property
    def is_opaque(self) -> bool:
        """Whether the rows of its loop end at functions of user code, which samples look below."""
        return self.target.is_foreign or is_live(self.policy) or not self.opener.by_name

    @property
    def by_laps(self) -> bool:
        """Whether a loop is looked at, and not the steps of a built-in world alone."""
        return bool(self.is_opaque or self.functions or self.tape or is_seated(self.target))

    @property
    def by_name(self) -> bool:
        """Whether another process can open and play the same."""
        return self.opener.by_name and isinstance(self.policy, str)


def profile(plan: ProfilePlan, progress: Progress = silent) -> Record:
    """Measure where the time goes, then let the probes look; Ctrl-C leaves a record of what there is."""
    if plan.is_opaque and not any(probe.name in probing.BELOW for probe in plan.probes):
        plan = replace(plan, probes=(registry.probes()[probing.SAMPLES], *plan.probes))
    probing.check(plan.probes, [plan.target], plan.time)
    record = measure(plan, progress)
    if plan.baselines is not None:
        record = with_previous(record, latest_profile(plan.baselines, record.target.name))
    if plan.probes:
        with TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True) as folder:
            record = probing.with_probes(record, plan, plan.files or Path(folder), progress)
        if plan.files is None:
            # A record names no files that are not kept.
            record = replace(record, findings=tuple(replace(each, files=()) for each in record.findings))
    return judge(record)


def split_steps(steps: int | None, warmup: int | None = None) -> Rounds:
    """Split a number of env-steps, the same for each side, into pairs; None is the usual number."""
    if steps is not None and not 1 <= steps <= MOST_STEPS:
        raise InputError(f"steps is {steps}: expected at least 1 and at most {MOST_STEPS:,}")
    iterations, usual = -(-(steps or STEPS) // PAIRS), WARMUP if warmup is None else warmup
    return Rounds(count=PAIRS, iterations=iterations, warmup=usual, box_iterations=steps is None)


def measure(plan: ProfilePlan, progress: Progress = silent) -> Record:
    """Play both sides pair by pair; the record is not judged yet."""
    rounds = split_steps(plan.steps, plan.warmup)
    with ExitStack() as stack:
        sides = open_sides(plan, stack)
        recorder = Recorder("profile", sides.clean.spec)
        sides.clean.reset()
        sides.watched.reset()
        clean = PassSide(CLEAN, sides.play_clean, sides.count_work)
        pairs = Pairs({CLEAN: clean, WATCHED: PassSide(WATCHED, sides.play_watched, dict)}, rounds)
        ended: dict[str, Any] = {}

        def so_far() -> Record:
            record = record_of(recorder, sides, pairs, rounds, ended or sides.results(pairs))
            return with_games(record, sides.clean, sides.subject, plan.games)

        with until_interrupted(pairs):
            play_pairs(sides, pairs, kept_so_far(lambda: so_far() if pairs.count else None, progress))
            sides.trace_torch()
            results = sides.results(pairs)
            # The clean side goes on as it was played.
            faults = sides.clean.faults(None if plan.policy == RANDOM else sides.script.draw(EXAMINED))
            ended = {**results, "notices": (*faults, *results["notices"])}
        if plan.tape:
            tapes.write(plan.tape, tapes.record(sides.subject, sides.played))
        return so_far()


def play_pairs(sides: "ProfileSides", pairs: "Pairs", progress: Progress) -> None:
    """Warm both sides up, then time them pair by pair in alternating order."""
    warming = [sides.clean, sides.watch.warming(sides.watched)]
    tables = [side for side in (sides.clean, sides.subject) if isinstance(side, Seated)]
    for table in tables:
        table.keep_games()
    clean, games = sides.clean, sides.plan.games
    rounds = warm_up_subjects(warming, sides.script, pairs.rounds, progress)
    rounds = pairs.rounds = rounds_for_games(rounds, clean, games)
    for table in tables:
        table.keep_games()
    sides.watch.begin()
    sides.view.begin()

    def note(_: Samples) -> None:
        sides.view.note(pairs.turns[WATCHED][-1].ns)
        steps = rounds.warmup + pairs.count * rounds.iterations
        progress(min(steps, rounds.env_steps), rounds.env_steps)

    def is_enough(_: Samples) -> bool:
        if pairs.count < rounds.count:
            return False
        if games is None or not isinstance(clean, Seated) or pairs.count >= MOST_PAIRS:
            return True
        return len(counted_games(clean, games)) >= games

    length = Length(rounds.iterations)
    how = Plan(budget_ns=NO_LIMIT, stop=is_enough, order="alternating", length=length)
    loop.measure(pairs.sides, how, on_round=note, samples=pairs)
    pairs.rounds = replace(rounds, count=pairs.count)
    if games is not None and isinstance(clean, Seated) and not clean.games:
        steps = clean.counters["env_steps"]
        raise InputError(f"no game of {clean.spec.name} ended in {steps:,} steps: --steps N profiles steps")


class Pairs(Samples):
    """The clean and the watched passes, pair by pair."""

    def __init__(self, sides: Mapping[str, Side], rounds: Rounds) -> None:
        super().__init__(sides)
        self.sides, self.rounds = sides, rounds
        self.steps: list[Mapping[str, int]] = []
        """What the clean side counted in each pair."""

    def note(self, round_: Mapping[str, Turn]) -> None:
        before = self.work[CLEAN].last
        super().note(round_)
        gained = {name: count - before.get(name, 0) for name, count in self.work[CLEAN].last.items()}
        self.steps.append(gained)

    @property
    def walls_ns(self) -> list[tuple[int, int]]:
        """Return the times of the clean and of the watched pass of each pair."""
        return [
            (clean.ns, watched.ns)
            for clean, watched in zip(self.turns[CLEAN], self.turns[WATCHED], strict=False)
        ]

    def overhead(self, mark_ns: float | None, paused_ns: Sequence[int]) -> Overhead | None:
        """Return what watching cost.

        `mark_ns` is what one mark takes, `paused_ns` what each watched pass spent on collecting garbage,
        which clean passes leave to later.
        """
        pairs = [
            (clean_ns, max(1, watched_ns - paused))
            for (clean_ns, watched_ns), paused in zip(self.walls_ns, paused_ns, strict=False)
        ]
        calm = self.calm_rounds([CLEAN], [WATCHED])
        return overhead([pairs[number] for number in calm] if len(calm) >= FEWEST else pairs, mark_ns)

    def speeds(self) -> dict[str, list[float]]:
        """Of each clean pass, from the work it counted: a call that only resets an env is no step."""
        turns = [(clean_ns, steps) for (clean_ns, _), steps in zip(self.walls_ns, self.steps, strict=True)]
        return {
            f"{what}_per_s": [steps[what] * 1e9 / ns for ns, steps in turns]
            for what in ("env_steps", "agent_steps")
        }


class StepView:
    """A batch of ours by itself, whose own log has the phases of its steps."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._times = Tally(lambda: batch.phase_totals() | extra_ns(batch))
        self._work = Tally(lambda: batch.counters)
        self._wall_ns = 0
        self._tree = TimeTree(total_ns=0)
        self._rounds: list[TimeTree] = []

    @property
    def mark_ns(self) -> float | None:
        return self._batch.mark_ns

    def begin(self) -> None:
        self._times.begin()
        self._work.begin()

    def look(self, watch: CallWatch, actions: Sequence[Actions]) -> Turn:
        with watch.look():
            return timed(partial(self.turn, watch, actions))

    def turn(self, watch: CallWatch, actions: Sequence[Actions]) -> int:
        begin = now_ns()
        play(self._batch, Glancing(actions), len(actions))
        watch.end_ns = now_ns()  # the last call's end and the whole's are one reading
        glance()
        return watch.end_ns - begin

    def note(self, wall_ns: int) -> None:
        self._wall_ns += wall_ns
        self._times.note()
        self._work.note()
        settings, before = self._batch.spec.settings, self._tree
        self._tree = step_times(
            self._times.gained,
            wall_ns=self._wall_ns,
            env_steps=self._work.gained["env_steps"],
            threads=settings.threads,
            beside=tuple(extra_ns(self._batch)),
        )
        self._rounds.append(self._tree - before)

    def rows(self, spreads: Mapping[str, Spread]) -> tuple[tuple[Phase, ...], int]:
        num_envs, has_others = self._batch.spec.settings.num_envs, bool(extra_ns(self._batch))
        # Of single calls only the engine's part is known: what Python took has the others' in it.
        known = {
            path: of_env_step(spread, num_envs)
            for path, spread in spreads.items()
            if path != PYTHON or not has_others
        }
        return describe_times(self._tree, self._rounds, known), self._tree["step"].self_ns

    def remarks(self) -> Sequence[Notice]:
        return ()


class LoopView:
    """Any loop, whose turns are laps and whose parts are spans."""

    def __init__(self, subject: Subject, player: Subject, functions: Sequence[Function]) -> None:
        self._subject, self._player, self._functions = subject, player, functions
        self._turns: list[TimeTree] = []
        """Of the round that is under way."""
        self._rounds: list[TimeTree] = []
        self._wall_ns = 0
        """Of the last stretch."""

    @property
    def mark_ns(self) -> float | None:
        return spans.mark_cost_ns()

    def begin(self) -> None:
        """After the warm-up, of which it kept nothing."""

    def look(self, watch: CallWatch, actions: Sequence[Actions]) -> Turn:
        native = self._subject.phase_totals()
        with watching(self._functions), watch.look():
            took = timed(partial(self.turn, watch, actions))
        self._turns.append(loop_times(self._subject, spans.tree(), self._wall_ns, len(actions), native))
        return took

    def turn(self, watch: CallWatch, actions: Sequence[Actions]) -> int:
        begin = now_ns()
        with span(LOOP):
            ns = play_in_laps(self._player, actions, watch.counted)
        self._wall_ns = now_ns() - begin
        return ns

    def note(self, wall_ns: int) -> None:
        """A round is over: the turns since the last one are its own."""
        self._rounds.append(self._tree_of(self._turns))
        self._turns = []

    def _tree_of(self, turns: Iterable[TimeTree]) -> TimeTree:
        return add(turns) or TimeTree(total_ns=0)

    def rows(self, spreads: Mapping[str, Spread]) -> tuple[tuple[Phase, ...], int]:
        tree = self._tree_of([*self._rounds, *self._turns])
        return describe_times(tree, self._rounds, spreads), tree.self_ns

    def remarks(self) -> Sequence[Notice]:
        return loop_remarks(self._subject, self._functions, self._tree_of([*self._rounds, *self._turns]))


class PassSide(Side):
    """The clean or the watched pass of a pair, as a side of the measuring loop."""

    grain = 1

    def __init__(
        self, name: str, play_steps: Callable[[int], Turn], counters: Callable[[], Mapping[str, int]]
    ) -> None:
        self.name, self._play, self._counters = name, play_steps, counters

    def turn(self, env_steps: int, run_in: int | None = None) -> Turn:
        return self._play(env_steps)

    def counters(self) -> Mapping[str, int]:
        return self._counters()


View = StepView | LoopView  # How the watched side is looked at, and the rows that come of it


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSides:
    """The two that do the same work, and what plays them."""

    plan: ProfilePlan
    clean: Subject
    watched: Subject
    watch: CallWatch
    view: View
    script: Journal
    subject: Subject  # The watched one itself, without what keeps or chooses its actions
    played: Sequence[Any]  # What the watched side has played since its reset, where it is kept
    # Actions of a pair that one side has still to play.
    drawn: dict[str, Sequence[Actions]] = field(default_factory=dict)
    # Of each watched pass, what it spent on collecting garbage.
    paused_ns: list[int] = field(default_factory=list)

    def count_work(self) -> dict[str, int]:
        """Return the counters of the clean side; of a built-in world, those of both must be the same."""
        clean = self.clean.counters
        if not self.plan.by_laps:
            refuse_other_work(clean, self.watched.counters)
        return clean

    def actions_for(self, name: str, calls: int) -> Sequence[Actions]:
        """Return the actions of a pair, which its first side draws for both."""
        if not self.drawn:
            actions = self.script.draw(calls)
            # A foreign env may change its actions.
            copied = deepcopy(actions) if self.plan.target.is_foreign else actions
            self.drawn.update({CLEAN: actions, WATCHED: copied})
        return self.drawn.pop(name)

    def play_clean(self, env_steps: int) -> Turn:
        calls = calls_for(env_steps, self.clean)
        actions = self.actions_for(CLEAN, calls)
        return timed(partial(play, self.clean, actions, calls))._replace(env_steps=env_steps)

    def play_watched(self, env_steps: int) -> Turn:
        """Play the watched side in stretches that its logs have room for."""
        calls = calls_for(env_steps, self.clean)
        ns = paused_ns = 0
        disturbed = False
        for part in self.watch.stretches(self.actions_for(WATCHED, calls), calls):
            took = self.view.look(self.watch, part)
            ns, disturbed = ns + took.ns, disturbed or took.disturbed
            paused_ns += self.watch.note(len(part))
        # Unless garbage is left to later, the clean side pauses too.
        self.paused_ns.append(paused_ns if self.plan.garbage == "between" else 0)
        return Turn(ns, env_steps, disturbed=disturbed)

    def trace_torch(self) -> None:
        """Play some more calls for a trace alone, where a policy in the loop uses torch."""
        tracer, view = self.plan.tracer, self.view

        def play_one() -> None:
            assert isinstance(view, LoopView), "a policy is in the loop"
            with self.watch.look():
                view.turn(self.watch, [None])
            self.watch.note(1, only_traced=True)

        if tracer and is_live(self.plan.policy) and "torch" in sys.modules:
            trace.watch_torch(play_one, tracer)

    def results(self, pairs: Pairs) -> dict[str, Any]:
        """Return what the watched side showed, as fields of a record; no rows if no pair was finished."""
        phases, unaccounted_ns = self.view.rows(self.watch.spreads()) if pairs.count else ((), None)
        policy = name_of(self.plan.policy)
        return {
            "phases": phases,
            "unaccounted_ns": unaccounted_ns,
            "notices": self.view.remarks(),
            "overhead": pairs.overhead(self.view.mark_ns, self.paused_ns),
            "slow": self.watch.slow(self.plan.target, policy=policy, journal=self.script),
            "validation": describe_validation(self.clean.counters),
        }


def open_sides(plan: ProfilePlan, stack: ExitStack) -> ProfileSides:
    """Open both sides and what plays them: a policy inside the loop, or actions that are drawn before."""
    clean = plan.opener.open(plan.target)
    stack.callback(plan.opener.keep, plan.target, clean)
    subject = stack.enter_context(closing(plan.opener.watched(plan.target)))
    functions = [find(name, home_of(plan.target.name)) for name in plan.functions]
    collects = stack.enter_context(no_collection(plan.garbage))
    watch = stack.enter_context(
        CallWatch(subject, by_laps=plan.by_laps, collects=collects, tracer=plan.tracer)
    )
    both: dict[str, Any] = {"plan": plan, "watch": watch, "subject": subject}
    if not plan.by_laps:
        assert isinstance(subject, Batch), "what is no loop is one of our presets"
        script = stack.enter_context(closing(Journal(play_of(str(plan.policy), clean))))
        return ProfileSides(
            clean=clean, watched=subject, view=StepView(subject), script=script, played=(), **both
        )
    kept = RecordingSubject(subject, keep=plan.tape is not None)
    watched: Subject = kept
    if is_live(plan.policy):
        clean = PolicySubject(clean, load(plan.policy))
        watched = PolicySubject(kept, load(plan.policy, timed=True))
        script = Journal(RandomPlay(clean))
    else:
        script = stack.enter_context(closing(Journal(play_of(str(plan.policy), clean))))
    view = LoopView(subject, watched, functions)
    return ProfileSides(clean=clean, watched=watched, view=view, script=script, played=kept.played, **both)


def record_of(
    recorder: Recorder, sides: "ProfileSides", pairs: Pairs, asked: Rounds, results: Mapping[str, Any]
) -> Record:
    """Return the record of the pairs so far; `results` are what the watched side showed."""
    plan, spec = sides.plan, sides.clean.spec
    policy = f"{name_of(plan.policy)} (live)" if is_live(plan.policy) else sides.script.policy
    walls = [[pair[side] for pair in pairs.walls_ns] for side in (0, 1)]
    notices = [*shortened_notices(asked, pairs.rounds), *results["notices"]]
    if spec.described.device != "cuda" and cuda_runs():  # a policy or user env whose GPU works behind it
        remedy = "put hotloop.run around the loop: its spans are events there"
        notices.append(notice(Code.HOST_TIMER, whose="the GPU's", remedy=remedy))
    return recorder.record(
        method=in_rounds(spec, pairs.rounds, policy, order="ABBA", garbage=plan.garbage),
        counters=pairs.work[CLEAN].gained,
        values={**pairs.speeds(), **dict(zip(WALLS, walls, strict=True))},
        partial=pairs.partial,
        **{**results, "notices": notices},
    )


def loop_remarks(subject: Subject, functions: Sequence[Function], tree: TimeTree) -> list[Notice]:
    """What was named and never called, and what was waited for."""
    shares = defaultdict[str, float](float)
    for row in tree.rows:
        shares[row.name] += row.total_ns / max(tree.total_ns, 1)
    said = [
        notice(Code.NEVER_CALLED, function=function.name)
        for function in functions
        if tree.total_ns and not any(name in shares for name in function.rows)
    ]
    workers, waited = subject.workers, shares[WAIT]
    if workers is not None and waited > WAITING_SHARE:
        worker, last = workers.slowest
        skew = shares[SLOWEST]
        if skew < UNEVEN_SHARE * waited:
            said.append(notice(Code.IDLE_WORKERS, share=waited))
        else:
            said.append(notice(Code.WAITING, share=waited, skew=skew, worker=f"worker {worker}", last=last))
    return said
