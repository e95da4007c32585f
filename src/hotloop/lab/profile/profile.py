"""Profile: where the time of a step goes, and what looking at it cost.

Two of a target play the same actions, one watched and one clean, in pairs whose order alternates.
Throughput comes from the clean one, the account of the time from the other. What is asked for beside that
follows: the profile before is compared with, and each probe looks in a pass of its own.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from hotloop.core import spans
from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.notices import Notice
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.record.profile import PYTHON, Phase, Spread, describe_times
from hotloop.core.registry import Probe
from hotloop.core.spans import glance, span
from hotloop.core.target import Target
from hotloop.core.time_tree import TimeTree, add
from hotloop.core.turn_clock import Turn, timed
from hotloop.envs import tapes
from hotloop.envs.batch import Batch
from hotloop.envs.foreign.phases import Function, find, home_of, watching
from hotloop.envs.open import beside
from hotloop.envs.subject import Subject
from hotloop.judge.baselines import latest_profile, with_previous
from hotloop.judge.judge import judge
from hotloop.lab.measure import loop
from hotloop.lab.measure.loop import (
    NO_LIMIT,
    Length,
    Plan,
    Rounds,
    Samples,
    Tally,
    until_interrupted,
    warm_up_subjects,
)
from hotloop.lab.measure.policy import (
    EXAMINED,
    RANDOM,
    Actions,
    Actor,
    Journal,
    RandomPlay,
    Watched,
    is_live,
    load,
    name_of,
    play_of,
)
from hotloop.lab.measure.record import Recorder, describe_validation, kept_so_far, refuse_other_work
from hotloop.lab.measure.sides import Garbage, Glancing, Side, calls_for, no_collection, play, play_in_laps
from hotloop.lab.measure.target import Opener
from hotloop.lab.profile import probes as probing
from hotloop.lab.profile import trace
from hotloop.lab.profile.probes import Picture, no_picture
from hotloop.lab.profile.record import CLEAN, WATCHED, Account, Pairs, loop_remarks, record_of
from hotloop.lab.profile.trace import Tracer
from hotloop.lab.profile.tree import LOOP, loop_times, of_env_step, step_times
from hotloop.lab.profile.watch import Watch
from hotloop.lab.sim.games import counted_games, rounds_for_games, with_games
from hotloop.lab.sim.seated import Seated, is_seated

PAIRS = 20

STEPS = 200_000

WARMUP = 50_000

MOST_PAIRS = 20 * PAIRS  # Pairs that are played for games that do not end


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is looked at, and how it is played."""

    target: Target
    # Who opens it; it may have the clean side open already, and has it again after.
    opener: Opener = field(default_factory=Opener)
    steps: int | None = None
    warmup: int | None = None  # Env-steps before the first pair, at most; None is the usual number
    policy: object = RANDOM  # The name of a player, `tape:FILE`, or a callable or its name
    time: tuple[str, ...] = ()  # Functions to look at
    tape: Path | None = None  # Where to write the actions that were played
    tracer: Tracer | None = None  # Who is given sampled steps
    garbage: Garbage = "between"
    # Whole games to count at least, of a target whose seats have players; None is by steps.
    games: int | None = None

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the functions that get rows: those asked for, and those of the target."""
        return tuple(dict.fromkeys((*self.time, *self.target.time)))

    @property
    def is_opaque(self) -> bool:
        """Whether the rows of its loop end at functions of somebody else's, which samples look below."""
        return self.target.is_foreign or is_live(self.policy) or not self.opener.by_name

    @property
    def by_laps(self) -> bool:
        """Whether a loop is looked at, and not the steps of one of our worlds alone."""
        return bool(self.is_opaque or self.functions or self.tape or is_seated(self.target))


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What is asked for beside where the time goes."""

    probes: tuple[Probe, ...] = ()
    baselines: Path | None = None  # A folder of profiles, whose latest of the target this one is held against
    files: Path | None = None  # Where the probes' files go; None keeps none
    picture: Picture = no_picture


NOTHING = Extras()


def profile(  # noqa: PLR0913 - one argument a flag of the command
    target: Target,
    steps: int | None = None,
    progress: Progress = silent,
    *,
    policy: object = RANDOM,
    time: Sequence[str] = (),
    tape: Path | None = None,
    tracer: Tracer | None = None,
    extras: Extras = NOTHING,
    opener: Opener | None = None,
    garbage: Garbage = "between",
    games: int | None = None,
) -> Record:
    """Profile a target under a policy's play, with what is asked for beside it.

    `time` names functions to look at; `tape` is a file for the actions that were played; `tracer` is given
    sampled steps; `opener` may have the clean side open already, and has it again after. `games` counts whole
    games of a target with `hero=` and `villain=`.
    """
    opening = opener or Opener()
    asked = Asked(
        target=target,
        opener=opening,
        steps=steps,
        policy=policy,
        time=tuple(time),
        tape=tape,
        tracer=tracer,
        garbage=garbage,
        games=games,
    )
    try:
        return look(asked, extras, progress)
    finally:
        if opener is None:
            opening.close()


def look(asked: Asked, extras: Extras = NOTHING, progress: Progress = silent) -> Record:
    """Measure, then whatever was asked for beside it; Ctrl-C leaves a record of what there is."""
    if asked.is_opaque:
        extras = replace(extras, probes=probing.with_samples(extras.probes))
    probing.check(extras.probes, [asked.target], asked.time)
    measured = measure(asked, progress)
    if extras.baselines is not None:
        measured = with_previous(measured, latest_profile(extras.baselines, measured.target.name))
    return judge(with_findings(measured, asked, extras, progress))


def with_findings(record: Record, asked: Asked, extras: Extras, progress: Progress) -> Record:
    """Let the probes look; a record names no files that nobody keeps."""
    if not extras.probes:
        return record
    with TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True) as folder:
        looked = probing.Asked(
            target=asked.target,
            opener=asked.opener,
            policy=asked.policy,
            steps=asked.steps,
            time=asked.time,
            probes=extras.probes,
            folder=extras.files or Path(folder),
            picture=extras.picture,
        )
        probed = probing.with_probes(record, looked, progress)
    if extras.files is not None:
        return probed
    return replace(probed, findings=tuple(replace(found, files=()) for found in probed.findings))


MOST_STEPS = 10**12  # What nobody lives to see the end of is a slip of the finger


def plan(steps: int | None, warmup: int | None = None) -> Rounds:
    """Split a number of env-steps, the same for each side, into pairs; None is the usual number."""
    if steps is not None and not 1 <= steps <= MOST_STEPS:
        raise InputError(f"steps is {steps}: expected at least 1 and at most {MOST_STEPS:,}")
    iterations, usual = -(-(steps or STEPS) // PAIRS), WARMUP if warmup is None else warmup
    return Rounds(count=PAIRS, iterations=iterations, warmup=usual, box_iterations=steps is None)


def measure(asked: Asked, progress: Progress) -> Record:
    """Play both sides pair by pair; the record is not judged yet."""
    rounds = plan(asked.steps, asked.warmup)
    with ExitStack() as stack:
        sides = cast(asked, stack)
        recorder = Recorder("profile", sides.clean.spec)
        sides.clean.reset()
        sides.watched.reset()
        passes = sides.passes()
        pairs = Pairs(passes, rounds)
        account: Account | None = None
        policy = f"{name_of(asked.policy)} (live)" if is_live(asked.policy) else sides.script.policy
        how: dict[str, Any] = {"asked": rounds, "policy": policy, "garbage": asked.garbage}

        def so_far() -> Record:
            found = record_of(recorder, sides.clean.spec, pairs, account or sides.account(pairs), **how)
            return with_games(found, sides.clean, sides.subject, asked.games)

        with until_interrupted(pairs):
            kept = kept_so_far(lambda: so_far() if pairs.count else None, progress)
            play_pairs(sides, passes, pairs, kept)
            sides.trace_torch()
            account = sides.account(pairs)
            account = replace(account, notices=(*sides.faults(), *account.notices))
        sides.keep_tape()
        return so_far()


def play_pairs(sides: "Sides", passes: Mapping[str, Side], pairs: Pairs, progress: Progress) -> None:
    """Warm both sides up, then time them pair by pair in alternating order."""
    warming = [sides.clean, sides.watch.warming(sides.watched)]
    tables = [side for side in (sides.clean, sides.subject) if isinstance(side, Seated)]
    for table in tables:
        table.keep_games()
    rounds = warm_up_subjects(warming, sides.script, pairs.rounds, progress)
    rounds = pairs.rounds = rounds_for_games(rounds, sides.clean, sides.asked.games)
    for table in tables:
        table.keep_games()
    sides.watch.begin()
    sides.view.begin()

    def note(_: Samples) -> None:
        sides.view.note(pairs.turns[WATCHED][-1].ns)
        steps = rounds.warmup + pairs.count * rounds.iterations
        progress(min(steps, rounds.env_steps), rounds.env_steps)

    def is_enough(_: Samples) -> bool:
        return pairs.count >= rounds.count and not lacks_games(pairs, sides)

    length = Length(rounds.iterations)
    how = Plan(budget_ns=NO_LIMIT, stop=is_enough, order="alternating", length=length)
    loop.measure(passes, how, on_round=note, samples=pairs)
    pairs.rounds = replace(rounds, count=pairs.count)
    refuse_endless(sides)


def refuse_endless(sides: "Sides") -> None:
    """Refuse games of which none came to its end."""
    clean = sides.clean
    if sides.asked.games is not None and isinstance(clean, Seated) and not clean.games:
        steps = clean.counters["env_steps"]
        raise InputError(f"no game of {clean.spec.name} ended in {steps:,} steps: --steps N profiles steps")


def lacks_games(pairs: Pairs, sides: "Sides") -> bool:
    """Whether games that were asked for are not over yet, and more pairs may be played for them."""
    games, clean = sides.asked.games, sides.clean
    if games is None or not isinstance(clean, Seated) or pairs.count >= MOST_PAIRS:
        return False
    return len(counted_games(clean, games)) < games


class View(Protocol):
    """How the watched side is looked at, and the rows that come of it."""

    @property
    def mark_ns(self) -> float | None:
        """What one mark of the instrument takes."""

    def begin(self) -> None:
        """After the warm-up."""

    def look(self, watch: Watch, actions: Sequence[Actions]) -> Turn:
        """Play a stretch under the watch."""

    def note(self, wall_ns: int) -> None:
        """After a whole pair, whose watched pass took so long."""

    def rows(self, spreads: Mapping[str, Spread]) -> tuple[tuple[Phase, ...], int]:
        """The account of the pairs there were, and what it leaves over."""

    def remarks(self) -> Sequence[Notice]: ...


class StepView:
    """A batch of ours by itself, whose own log has the phases of its steps."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._times = Tally(lambda: batch.phase_totals() | beside(batch))
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

    def look(self, watch: Watch, actions: Sequence[Actions]) -> Turn:
        with watch.look():
            return timed(partial(self.turn, watch, actions))

    def turn(self, watch: Watch, actions: Sequence[Actions]) -> int:
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
            beside=tuple(beside(self._batch)),
        )
        self._rounds.append(self._tree - before)

    def rows(self, spreads: Mapping[str, Spread]) -> tuple[tuple[Phase, ...], int]:
        num_envs, has_others = self._batch.spec.settings.num_envs, bool(beside(self._batch))
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
        """Nothing was kept of the warm-up."""

    def look(self, watch: Watch, actions: Sequence[Actions]) -> Turn:
        native = self._subject.phase_totals()
        with watching(self._functions), watch.look():
            took = timed(partial(self.turn, watch, actions))
        self._turns.append(loop_times(self._subject, spans.tree(), self._wall_ns, len(actions), native))
        return took

    def turn(self, watch: Watch, actions: Sequence[Actions]) -> int:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The two that do the same work, and who plays them."""

    asked: Asked
    clean: Subject
    watched: Subject
    watch: Watch
    view: View
    script: Journal
    subject: Subject  # The watched one itself, without what keeps or chooses its actions
    played: Sequence[Any]  # What the watched side has played since its reset, where it is kept
    # Actions of a pair that one side has still to play.
    drawn: dict[str, Sequence[Actions]] = field(default_factory=dict)
    # Of each watched pass, what it spent on collecting garbage.
    paused_ns: list[int] = field(default_factory=list)

    def work(self) -> dict[str, int]:
        """The counters of the clean side; of our worlds alone, those of both must be the same."""
        clean = self.clean.counters
        if not self.asked.by_laps:
            refuse_other_work(clean, self.watched.counters)
        return clean

    def passes(self) -> dict[str, Side]:
        """Return both sides of a pair, in the order of its first one."""
        return {
            CLEAN: PassSide(CLEAN, self.play_clean, self.work),
            WATCHED: PassSide(WATCHED, self.play_watched, dict),
        }

    def actions_for(self, name: str, calls: int) -> Sequence[Actions]:
        """Return the actions of a pair, which its first side draws for both."""
        if not self.drawn:
            actions = self.script.draw(calls)
            # A foreign env may change its actions.
            copied = deepcopy(actions) if self.asked.target.is_foreign else actions
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
        self.paused_ns.append(paused_ns if self.asked.garbage == "between" else 0)
        return Turn(ns, env_steps, disturbed=disturbed)

    def trace_torch(self) -> None:
        """Play some more calls for a trace alone, where a policy in the loop uses torch."""
        tracer, view = self.asked.tracer, self.view

        def play_one() -> None:
            assert isinstance(view, LoopView), "a policy is in the loop"
            with self.watch.look():
                view.turn(self.watch, [None])
            self.watch.note(1, only_traced=True)

        if tracer and is_live(self.asked.policy) and trace.has_torch():
            trace.watch_torch(play_one, tracer)

    def faults(self) -> tuple[Notice, ...]:
        """Of the clean side, which goes on as it was played."""
        return self.clean.faults(None if self.asked.policy == RANDOM else self.script.draw(EXAMINED))

    def keep_tape(self) -> None:
        if self.asked.tape:
            tapes.write(self.asked.tape, tapes.record(self.subject, self.played))

    def account(self, pairs: Pairs) -> Account:
        """What there is to write down of the watched side; no rows where no pair was finished."""
        asked, watch = self.asked, self.watch
        phases, unaccounted_ns = self.view.rows(watch.spreads()) if pairs.count else ((), None)
        policy = name_of(asked.policy)
        return Account(
            phases=phases,
            unaccounted_ns=unaccounted_ns,
            notices=self.view.remarks(),
            overhead=pairs.overhead(self.view.mark_ns, self.paused_ns),
            slow=watch.slow(asked.target, policy=policy, journal=self.script),
            validation=describe_validation(self.clean.counters),
        )


def cast(asked: Asked, stack: ExitStack) -> Sides:
    """Open both sides and say who plays them: a policy inside the loop, or actions that are there before."""
    clean = asked.opener.open(asked.target)
    stack.callback(asked.opener.keep, asked.target, clean)
    subject = stack.enter_context(closing(asked.opener.watched(asked.target)))
    functions = [find(name, home_of(asked.target.name)) for name in asked.functions]
    collects = stack.enter_context(no_collection(asked.garbage))
    watch = stack.enter_context(Watch(subject, by_laps=asked.by_laps, collects=collects, tracer=asked.tracer))
    both: dict[str, Any] = {"asked": asked, "watch": watch, "subject": subject}
    if not asked.by_laps:
        assert isinstance(subject, Batch), "what is no loop is one of our presets"
        script = stack.enter_context(closing(Journal(play_of(str(asked.policy), clean))))
        return Sides(clean=clean, watched=subject, view=StepView(subject), script=script, played=(), **both)
    kept = Watched(subject, keep=asked.tape is not None)
    watched: Subject = kept
    if is_live(asked.policy):
        clean = Actor(clean, load(asked.policy))
        watched = Actor(kept, load(asked.policy, timed=True))
        script = Journal(RandomPlay(clean))
    else:
        script = stack.enter_context(closing(Journal(play_of(str(asked.policy), clean))))
    view = LoopView(subject, watched, functions)
    return Sides(clean=clean, watched=watched, view=view, script=script, played=kept.played, **both)
