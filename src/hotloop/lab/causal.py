"""Causal: small delays in one part of a loop at a time, in turns, and what each costs the whole.

A loop says when an update ends. Its first updates show its parts; then blocks of updates follow one another
in shuffled pairs, one with a delay in a part and one without. How long a delay really was is measured, so
that it need not be exact; of a block the median update counts, since a busy machine spoils single ones. What
the loop waited for a core is left out of both: a thread that slept is given one sooner, so that on a busy
machine a delay would seem to cost less than it takes.
"""

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from operator import sub
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from threading import get_ident
from time import sleep
from typing import Any

from hotloop.core import spans
from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.settings import Target
from hotloop.core.time_tree import TimeTree
from hotloop.core.turn_clock import queued_ns
from hotloop.envs.foreign.phases import find, home_of, watching
from hotloop.judge.expect import Trial
from hotloop.lab.measure.policy import PolicySubject, RandomPlay, is_live, load, play_of
from hotloop.lab.measure.sides import play
from hotloop.lab.measure.target import Opener
from hotloop.lab.programs.launch import Launcher, Program

# Names a folder, as an environment variable: loops inside delay their parts and write what they saw
SWITCH = "HOTLOOP_CAUSAL"

BLOCK = 6  # Updates of a block, of which the first is let by: what was queued before is done in it
FIRST = 8  # Updates in which the parts are learnt

# Of an update's time that is added to it: little, since what is hidden comes out where much is added
DOSE = 0.2

SHORTEST_NS = 200_000  # Of one delay; of what is called more often, every so many calls have one
SMALLEST = 0.02  # Of the time of an update, from which on a part is tried

MOST_PARTS = 8

TURNS = 24  # With a delay, of each part, that an interval wants on a machine that is not quiet
Totals = Mapping[str, tuple[int, int]]  # Name of a part to calls and ns


class Delays:
    """Told of every boundary, it waits at the end of one part."""

    def __init__(
        self,
        clock: Callable[[], int] = now_ns,
        wait: Callable[[float], None] = sleep,
        queued: Callable[[], int] = queued_ns,
    ) -> None:
        self._clock, self._wait, self._queued = clock, wait, queued
        self.part: str | None = None
        self.delay_ns, self.every, self._calls = 0, 1, 0
        self.inserted_ns = 0

    def give(self, part: str | None, delay_ns: float, every: int) -> None:
        """From now on, in this part and in no other."""
        self.part, self.delay_ns, self.every = part, int(delay_ns), max(every, 1)
        self._calls = self.inserted_ns = 0

    def open(self, name: str) -> None:
        pass

    def start(self) -> None:
        pass

    def close(self, name: str) -> None:
        self.mark(name)

    def mark(self, name: str) -> None:
        if name != self.part:
            return
        self._calls += 1
        if self._calls % self.every == 0:
            begin, before = self._clock(), self._queued()  # what looking takes is inserted, too
            self._wait(self.delay_ns / 1e9)
            waited_ns = self._queued() - before
            self.inserted_ns += self._clock() - begin - waited_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Some updates with a delay in one part, or in none."""

    part: str | None
    wall_ns: tuple[int, ...]  # Of each update
    unqueued_ns: tuple[int, ...]  # The same without waiting for a core
    inserted_ns: tuple[int, ...]
    own_ns: dict[str, float]  # Of every part, in one update on average


@dataclass(slots=True)
class Experiment:
    """A loop whose updates are counted: `turn` at the end of each."""

    clock: Callable[[], int] = now_ns
    queued: Callable[[], int] = queued_ns
    delays: Delays = field(default_factory=Delays)
    read: Callable[[], Totals] = lambda: totals(spans.tree())
    seed: int | None = None
    blocks: list[Block] = field(default_factory=list)
    parts: dict[str, tuple[float, float]] = field(default_factory=dict)  # Of an update: calls and ns
    # When each update of the block ended; what had been waited for a core and inserted by then
    _ends: list[tuple[int, int, int]] = field(default_factory=list)
    _order: Iterator[str | None] | None = None
    _own: "SelfTimes" = field(default_factory=lambda: SelfTimes({}))
    _update_ns: float = 0.0
    _thread: int | None = None

    def begin(self) -> None:
        """Begin to look; the caller's thread counts the updates."""
        self._thread, self._own = get_ident(), SelfTimes(self.read())
        self._ends = [(self.clock(), self.queued(), 0)]
        spans.delay_by(self.delays)

    def end(self) -> None:
        spans.delay_by(None)

    def turn(self) -> None:
        """An update has ended."""
        if get_ident() != self._thread:
            return
        self._ends.append((self.clock(), self.queued(), self.delays.inserted_ns))
        self._own.note(self.read())
        if self._order is None:
            if len(self._ends) > FIRST:
                self._learn()
        elif len(self._ends) == 1:
            self._own.clear()
        elif len(self._ends) == BLOCK:
            self._note()

    def _learn(self) -> None:
        """Choose the parts by what they took in the first updates; without any there is nothing to try."""
        self._update_ns = median(after[0] - before[0] for before, after in pairwise(self._ends))
        gained = self._own.of_update()
        found = {name: each for name, each in gained.items() if each[1] >= SMALLEST * self._update_ns}
        self.parts = dict(sorted(found.items(), key=lambda each: -each[1][1])[:MOST_PARTS])
        if not self.parts:
            self._thread = None
            return
        self._order = order_blocks([*self.parts], random.Random(self.seed))
        self._next()

    def _next(self) -> None:
        assert self._order is not None, "the parts are known"
        part = next(self._order)
        self._ends.clear()
        calls = self.parts[part][0] if part else 1.0
        delay_ns = DOSE * self._update_ns / calls
        every = max(min(round(SHORTEST_NS / delay_ns), int(calls)), 1)
        self.delays.give(part, delay_ns * every, every)

    def _note(self) -> None:
        took = zip(*(map(sub, after, before) for before, after in pairwise(self._ends)), strict=True)
        walls, queued, inserted = map(tuple, took)
        gained = self._own.of_update()
        made = Block(
            part=self.delays.part,
            wall_ns=walls,
            unqueued_ns=tuple(map(sub, walls, queued)),
            inserted_ns=inserted,
            own_ns={name: gained.get(name, each)[1] for name, each in self.parts.items()},
        )
        self.blocks.append(made)
        self._next()


class SelfTimes:
    """Times of parts by themselves, update by update; one in which the tree was begun anew is left out."""

    def __init__(self, now: Totals) -> None:
        self._last = now
        self.clear()

    def clear(self) -> None:
        self._calls, self._ns, self._updates = Counter[str](), Counter[str](), 0

    def note(self, now: Totals) -> None:
        """An update has ended, and the tree says this."""
        before, self._last = self._last, now
        if any(calls > now.get(name, (0, 0))[0] for name, (calls, _) in before.items()):
            return
        self._updates += 1
        for name, (calls, ns) in now.items():
            self._calls[name] += calls - before.get(name, (0, 0))[0]
            self._ns[name] += ns - before.get(name, (0, 0))[1]

    def of_update(self) -> dict[str, tuple[float, float]]:
        """Name to calls and ns of one update on average; nothing where none was seen whole."""
        count = self._updates
        return {name: (calls / count, self._ns[name] / count) for name, calls in self._calls.items() if calls}


def totals(tops: Sequence[TimeTree]) -> Totals:
    """Calls and ns of every leaf by its name, of all threads together."""
    calls, ns = Counter[str](), Counter[str]()
    for row in (row for top in tops for row in top.walk() if not row.children):
        calls[row.name] += row.calls
        ns[row.name] += row.total_ns
    return {name: (calls[name], ns[name]) for name in calls}


def order_blocks(parts: Sequence[str], chance: random.Random) -> Iterator[str | None]:
    """Blocks without end: every part in turn and none right before or after it."""
    while True:
        for part in chance.sample(parts, len(parts)):
            yield from chance.sample([None, part], 2)


def trials(blocks: Sequence[Block]) -> list[Trial]:
    """Return each delayed block against the one beside it that has no delay."""
    found = []
    for pair in zip(blocks[::2], blocks[1::2], strict=False):
        block, base = pair if pair[0].part else pair[::-1]
        if block.part is None or median(block.inserted_ns) <= 0:
            continue
        base_ns = median(base.unqueued_ns)
        found.append(
            Trial(
                part=block.part,
                own_ns=base.own_ns[block.part] * base_ns / fmean(base.wall_ns),
                base_ns=base_ns,
                delayed_ns=median(block.unqueued_ns),
                inserted_ns=median(block.inserted_ns),
            )
        )
    return found


def from_environment() -> Experiment | None:
    """Read the causal experiment from the environment; None if it is not set."""
    return Experiment() if os.environ.get(SWITCH) else None


def left_folder() -> Path | None:
    """Where a delayed run puts what it leaves, none of which is the program as it is; None where none is."""
    made = os.environ.get(SWITCH)
    return Path(made, f"left-{os.getpid()}-{now_ns()}") if made else None


@contextmanager
def run_experiment() -> Iterator[Callable[[], None]]:
    """Delay the parts of a loop where that is asked for; gives what is called at the end of each update."""
    experiment = from_environment()
    if experiment is None:
        yield lambda: None
        return
    experiment.begin()
    try:
        yield experiment.turn
    finally:
        experiment.end()
        write_blocks(experiment)


def write_blocks(experiment: Experiment) -> None:
    """Leave what was seen where it was asked for."""
    path = Path(os.environ[SWITCH], f"{os.getpid()}-{now_ns()}.json")
    path.write_text(json.dumps([asdict(block) for block in experiment.blocks]), encoding="utf-8")


def read_trials(folder: Path) -> list[Trial]:
    """What loops left there."""
    found: list[Trial] = []
    for path in sorted(folder.glob("*.json")):
        told: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        found += trials([Block(**each) for each in told])
    return found


def delay_program(program: Program, fewest: int, most_runs: int, progress: Progress = silent) -> list[Trial]:
    """Run a program, and again, until each of its parts was delayed often enough."""
    found: list[Trial] = []
    with TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True) as made, Launcher() as launcher:
        for number in range(most_runs):
            progress(number, most_runs)
            launcher.run(program, {SWITCH: made})
            found = drop_small_parts(read_trials(Path(made)))
            refuse_nothing(found, program.name)
            if min(Counter(trial.part for trial in found).values()) >= fewest:
                break
    return found


def drop_small_parts(found: Sequence[Trial]) -> list[Trial]:
    """Return the trials of parts that matter over all runs; the first updates of one may show them larger."""
    shares: dict[str, list[float]] = {}
    for trial in found:
        shares.setdefault(trial.part, []).append(trial.share)
    return [trial for trial in found if median(shares[trial.part]) >= SMALLEST]


def refuse_nothing(found: Sequence[Trial], what: str) -> None:
    if not found:
        raise InputError(
            f"{what} made no turn with a delay: it needs hotloop.run around its loop, spans inside, and "
            f"more than {FIRST + 2 * BLOCK} updates that are counted"
        )


UPDATE_NS = 10_000_000  # What a stretch of calls takes that counts as one update

LONGEST_NS = 60_000_000_000


def delay_target(
    record: Record, functions: Sequence[str], turns: int, progress: Progress = silent
) -> list[Trial]:
    """Play the target of a profile with delays in one of its parts at a time."""
    if record.slow is None or record.target.world is not None:
        raise InputError(
            "the phases of a native step cannot be delayed one by one; what the step is worth in a training "
            f"says: hotloop diagnose --causal -- hotloop train {record.target.words} run=NAME"
        )
    experiment = Experiment()
    run_causal(experiment, record.slow.profiled_target, record.slow.policy, functions, turns, progress)
    found = trials(experiment.blocks)
    refuse_nothing(found, record.target.words)
    return found


def run_causal(
    experiment: Experiment,
    target: Target,
    policy: str,
    functions: Sequence[str],
    turns: int,
    progress: Progress = silent,
) -> None:
    """Play a target until every part of it was delayed often enough."""
    with ExitStack() as stack:
        subject = stack.enter_context(closing(Opener().watched(target)))
        watched = [find(name, home_of(target.name)) for name in functions]
        live = is_live(policy)
        player = PolicySubject(subject, load(policy, timed=True)) if live else subject
        script = RandomPlay(player) if live else stack.enter_context(closing(play_of(policy, subject)))
        player.reset()
        calls = 1
        while play(player, script.draw(calls), calls) < UPDATE_NS:
            calls *= 2
        stack.enter_context(watching(watched))
        spans.enable()
        stack.callback(spans.disable)
        experiment.begin()
        stack.callback(experiment.end)
        begin, updates = now_ns(), 0
        while (taken := now_ns() - begin) < LONGEST_NS and not is_enough(experiment, updates, turns):
            progress(taken, LONGEST_NS)
            play(player, script.draw(calls), calls)
            experiment.turn()
            updates += 1


def is_enough(experiment: Experiment, updates: int, turns: int) -> bool:
    """Whether every part had its turns; where there are no parts, there is nothing to wait for."""
    if updates <= FIRST:
        return False
    counted = Counter(trial.part for trial in trials(experiment.blocks))
    return all(counted[part] >= turns for part in experiment.parts)
