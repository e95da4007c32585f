"""The loop under the lens: where the time of anybody's loop goes, in one tree that adds up.

Two subjects are made alike. The watched one has its calls in spans: env.step, env.reset, the policy, what
the user marked, the functions named by `--time`, and the phases of native code. The clean one has none.
They take turns, and what the spans cost is said with its interval.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hotloop.core import spans
from hotloop.core.clock import now_ns
from hotloop.core.notices import Code, Notice, notice
from hotloop.core.record import Record
from hotloop.core.spans import span
from hotloop.envs.foreign.functions import Function, watching
from hotloop.envs.foreign.vector import SLOWEST, WAIT
from hotloop.envs.subject import Subject
from hotloop.lab import taping, torching
from hotloop.lab.account import Tally
from hotloop.lab.acting import Actor, Watched, is_live, load, name_of
from hotloop.lab.journal import Journal
from hotloop.lab.judge import judge
from hotloop.lab.play import Actions, RandomPlay, no_collection, play, play_in_laps, play_of
from hotloop.lab.progress import Progress, silent
from hotloop.lab.recording import Recorder, in_rounds, overhead
from hotloop.lab.rounds import Rounds, calls_for, shortened, warm_up
from hotloop.lab.tracing import Tracer
from hotloop.lab.tree import LOOP, Tree
from hotloop.lab.watch import Watch

WAITING_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be looked at."""

    clean: Subject
    watched: Subject
    given: Mapping[str, object] = field(default_factory=dict)
    """The keys that both were opened with."""
    policy: object
    """The name of a player, `tape:FILE`, or a callable or its name."""
    functions: Sequence[Function] = ()
    tape: Path | None = None
    """Where to write the actions that were played."""
    tracer: Tracer | None = None
    """Who is given sampled steps."""


@dataclass(slots=True, kw_only=True)
class Findings:
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
        found = Findings(rounds=rounds, work=Tally(lambda: sides.clean.counters), tree=Tree(asked.watched))
        try:
            measure(sides, asked, found, progress)
            trace_torch(sides, asked)
        except KeyboardInterrupt:
            found.partial = True
        if asked.tape:
            taping.write(asked.tape, asked.watched, sides.played)
        return judge(write_up(sides, asked, recorder, rounds, found))


def cast(asked: Asked, stack: ExitStack, *, collects: bool) -> Cast:
    """Who plays: a policy inside the loop, or actions that are there before it."""
    stack.enter_context(closing(asked.clean))
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


def measure(sides: Cast, asked: Asked, found: Findings, progress: Progress) -> None:
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

    if asked.tracer and is_live(asked.policy) and torching.has_torch():
        torching.watch_torch(play_one, asked.tracer)


def write_up(sides: Cast, asked: Asked, recorder: Recorder, planned: Rounds, found: Findings) -> Record:
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
        notices=[*shortened(planned, found.rounds), *remarks(asked, tree)],
        partial=found.partial,
        overhead=overhead(found.pairs, found.paused_ns, spans.mark_cost_ns()),
        slow=sides.watch.slow(
            target=asked.watched.spec.name,
            given=asked.given,
            policy=name_of(asked.policy),
            journal=sides.script,
        ),
        **tables,
    )


def speeds(found: Findings) -> dict[str, list[float]]:
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
    workers = getattr(asked.watched, "workers", None)
    waited = tree.share(WAIT)
    if workers is not None and waited > WAITING_SHARE:
        worker, last = workers.slowest
        skew = tree.share(SLOWEST)
        said.append(notice(Code.WAITING, share=waited, skew=skew, worker=f"worker {worker}", last=last))
    return said
