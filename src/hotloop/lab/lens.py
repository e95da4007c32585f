"""The loop under the lens: where the time of anybody's loop goes, in one tree that adds up.

Two subjects are made alike. The watched one has its calls in spans: env.step, env.reset, the policy, what
the user marked, the functions named by `--time`, and the phases of native code. The clean one has none.
They take turns, and what the spans cost is said with its interval.
"""

from collections.abc import Sequence
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
from hotloop.lab import taping
from hotloop.lab.account import Tally
from hotloop.lab.acting import Actor, Watched, is_live, load, name_of
from hotloop.lab.judge import judge
from hotloop.lab.play import Actions, Play, RandomPlay, no_collection, play, play_of
from hotloop.lab.progress import Progress, silent
from hotloop.lab.recording import Recorder, in_rounds, overhead
from hotloop.lab.rounds import Rounds, calls_for, shortened, warm_up
from hotloop.lab.tree import LOOP, Tree

WAITING_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be looked at."""

    clean: Subject
    watched: Subject
    policy: object
    """The name of a player, `tape:FILE`, or a callable or its name."""
    functions: Sequence[Function] = ()
    tape: Path | None = None
    """Where to write the actions that were played."""


@dataclass(slots=True, kw_only=True)
class Findings:
    """What is known so far, complete up to the last whole pair."""

    rounds: Rounds
    work: Tally
    tree: Tree
    pairs: list[tuple[int, int]] = field(default_factory=list)
    """Clean and watched ns."""
    steps: list[dict[str, int]] = field(default_factory=list)
    """What the clean side counted in each pair."""
    partial: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """The two sides and who plays them."""

    clean: Subject
    watched: Subject
    script: Play
    policy: str
    played: list[Any]
    """What the watched side has played since its reset, where it is kept."""


def look(asked: Asked, rounds: Rounds, progress: Progress = silent) -> Record:
    """Profile a loop; Ctrl-C leaves a record of the pairs there were."""
    with ExitStack() as stack:
        sides = cast(asked, stack)
        stack.enter_context(no_collection())
        recorder = Recorder("profile", sides.clean.spec)
        sides.clean.reset()
        sides.watched.reset()
        found = Findings(rounds=rounds, work=Tally(lambda: sides.clean.counters), tree=Tree(asked.watched))
        try:
            measure(sides, asked, found, progress)
        except KeyboardInterrupt:
            found.partial = True
        if asked.tape:
            taping.write(asked.tape, asked.watched, sides.played)
        return judge(write_up(sides, asked, recorder, rounds, found))


def cast(asked: Asked, stack: ExitStack) -> Cast:
    """Who plays: a policy inside the loop, or actions that are there before it."""
    stack.enter_context(closing(asked.clean))
    stack.enter_context(closing(asked.watched))
    watched = Watched(asked.watched, keep=asked.tape is not None)
    if is_live(asked.policy):
        clean = Actor(asked.clean, load(asked.policy))
        acting = Actor(watched, load(asked.policy, timed=True))
        name = f"{name_of(asked.policy)} (live)"
        return Cast(clean=clean, watched=acting, script=RandomPlay(clean), policy=name, played=watched.played)
    script = stack.enter_context(closing(play_of(str(asked.policy), asked.clean)))
    return Cast(
        clean=asked.clean, watched=watched, script=script, policy=script.policy, played=watched.played
    )


def measure(sides: Cast, asked: Asked, found: Findings, progress: Progress) -> None:
    """Warm both up, then time them pair by pair in alternating order."""
    clean, watched, script = sides.clean, sides.watched, sides.script
    rounds = found.rounds = warm_up([clean, watched], script, found.rounds, progress)
    calls = calls_for(rounds.iterations, clean)
    found.work.begin()
    while len(found.pairs) < rounds.count:
        before, actions = clean.counters, script.draw(calls)
        flipped = len(found.pairs) % 2 == 1
        first_ns = observe(watched, actions, calls, asked, found.tree) if flipped else 0
        clean_ns = play(clean, actions, calls)
        watched_ns = first_ns or observe(watched, actions, calls, asked, found.tree)
        found.pairs.append((clean_ns, watched_ns))
        found.steps.append({name: count - before[name] for name, count in clean.counters.items()})
        found.work.note()
        progress(rounds.warmup + len(found.pairs) * rounds.iterations, rounds.env_steps)
    found.partial = False


def observe(watched: Subject, actions: Sequence[Actions], calls: int, asked: Asked, tree: Tree) -> int:
    """Run the watched side with spans on; returns the ns of the loop."""
    native = asked.watched.phase_totals()
    with watching(asked.functions):
        spans.enable()
        try:
            begin = now_ns()
            with span(LOOP):
                ns = play(watched, actions, calls)
            wall_ns = now_ns() - begin
        finally:
            spans.disable()
    tree.add(spans.tree(), wall_ns, calls, native)
    return ns


def write_up(sides: Cast, asked: Asked, recorder: Recorder, planned: Rounds, found: Findings) -> Record:
    tree = found.tree
    tables = {"phases": tree.rows(), "unaccounted_ns": tree.unaccounted_ns} if found.pairs else {}
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
        overhead=overhead(found.pairs),
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
