"""Sides that take turns: measured close together, round by round, until it is settled."""

import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from statistics import fmean
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeVar

from hotloop.core.clock import now_ns
from hotloop.core.progress import Progress, silent
from hotloop.core.record import A, B, Ratio
from hotloop.envs.subject import Subject
from hotloop.judge.compare import BAND
from hotloop.lab.measure.policy import Play, play_of
from hotloop.lab.measure.rounds import calls_for
from hotloop.lab.measure.stepping import accounted, collect_rest, play
from hotloop.lab.measure.work import Tally
from hotloop.lab.validate.equal import field_hashes
from hotloop.stats.intervals import FEWEST
from hotloop.stats.ratio import half_width, ratio

RUN_IN = 10
"""One in so many calls of a turn is made before its clock starts: the side before left its own caches."""

NO_PHASES: Mapping[str, int] = MappingProxyType({})

AGAIN = "again"
"""A second instance of the baseline: the noise of the machine."""

TURN_NS = 6_000_000
"""What a turn takes about, the mean over the sides: the closer in time, the more alike what disturbs them."""

WARMUP_NS = 300_000_000
"""For each side, as long as that is no more than a quarter of the time there is."""

WARMUP_SHARE = 4

ROUNDS_AT_LEAST = 60
"""That a turn is made short for, where the time is."""

LONG_NS = 50_000_000
"""From which on a turn needs no run-in: caches are warm long before it ends."""

MOST_GRAINS = 16
"""How many times the longest grain the env-steps may be that all sides can make to the digit."""

ORDER_SEED = 20_240_229

BLOCK = 6
"""Rounds in which every order of three sides comes once."""

SHORT_BLOCKS = 10
"""Blocks that have to fit into the time for the last one to be waited for."""

LOOK_IN = 4
"""After one in so many rounds, at random, all that the sides show is compared."""

LOOK_SHARE = 0.1
"""Of the time, at most, that goes into that."""

FEWEST_CALM = 2 * FEWEST
CALM_SHARE = 4
"""Pairs in which nobody was put off its core that are enough to leave out the rest: 12, and one in four."""

MOST_PERMUTED = 3
"""Sides whose orders all come before one comes again; those of more would outlast the rounds."""

Taken = TypeVar("Taken")
"""What one turn gives."""


class Turn(NamedTuple):
    """One timed stretch of one side."""

    ns: int
    env_steps: int
    phases: Mapping[str, int] = NO_PHASES
    """Nanoseconds in each, and in `step` as a whole; empty where nothing is timed."""
    cpu_ns: int | None = None
    """CPU time of the side's process, with what it still did when the clock had stopped."""
    late_ns: int = 0
    """The part of it that came so late."""
    off_ns: int = 0
    """For how long it was put off its core for somebody else, and is not to blame."""

    @property
    def ns_per_env_step(self) -> float:
        return self.ns / self.env_steps

    @property
    def own_ns_per_env_step(self) -> float:
        """Without what the machine did for others meanwhile."""
        return (self.ns - self.off_ns) / self.env_steps

    @property
    def cpu_ns_per_env_step(self) -> float:
        return (self.cpu_ns or 0) / self.env_steps


class Length(NamedTuple):
    """How long the turns of all sides are."""

    env_steps: int
    run_in: int = 0
    """Env-steps before the clock starts, as many on every side."""


class Side(Protocol):
    """Something that can run a round of n env-steps, or more by a part of a call, and count its work."""

    name: str

    @property
    def grain(self) -> int:
        """Env-steps of the shortest turn there is; every other is a multiple of it."""

    def turn(self, env_steps: int, run_in: int | None = None) -> Turn:
        """Run and time that many, after a stretch that nobody times, by itself a tenth as long."""

    def seen(self) -> Mapping[str, str]:
        """A hash of each field of all that it shows now; empty where nothing is held against others."""

    def counters(self) -> Mapping[str, int]: ...

    def close(self) -> None: ...


class SubjectSide:
    """A subject and who plays it; two sides of one seed are played alike."""

    def __init__(self, name: str, subject: Subject, policy: str) -> None:
        self.name = name
        self.subject = subject
        self.script: Play = play_of(policy, subject)
        self._before = subject.counters
        """What it did before it became a side."""
        subject.reset()

    @property
    def grain(self) -> int:
        return self.subject.spec.num_envs

    def turn(self, env_steps: int, run_in: int | None = None) -> Turn:
        calls = calls_for(env_steps, self.subject)
        ahead = -(-calls // RUN_IN) if run_in is None else calls_for(run_in, self.subject)
        if ahead:
            play(self.subject, self.script.draw(ahead), ahead)
        drawn, before = self.script.draw(calls), self.subject.phase_totals()
        took = accounted(partial(play, self.subject, drawn, calls))
        phases = {name: total - before[name] for name, total in self.subject.phase_totals().items()}
        env_steps = calls * self.subject.spec.num_envs
        return Turn(took.ns, env_steps, phases, took.cpu_ns, took.late_ns, took.off_ns)

    def seen(self) -> Mapping[str, str]:
        return field_hashes(self.subject)

    def counters(self) -> Mapping[str, int]:
        return {name: count - self._before.get(name, 0) for name, count in self.subject.counters.items()}

    def close(self) -> None:
        self.script.close()
        self.subject.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """When a comparison is over."""

    band: float = BAND
    """Changes smaller than this are called the same."""
    budget_ns: int = 6_000_000_000
    """What one run may take with its warm-up; a verdict of faster or slower takes a second one."""
    fewest: int = 30
    """Rounds before an interval is looked at."""

    @property
    def turn_ns(self) -> int:
        """What a turn takes about: short enough for the rounds that are wanted."""
        return min(TURN_NS, self.budget_ns // (ROUNDS_AT_LEAST * MOST_PERMUTED))

    @property
    def settled(self) -> float:
        """The half-width of an interval at which it is narrow enough."""
        return self.band / 2


USUAL = Plan()

THOROUGH = Plan(band=BAND / 2, budget_ns=60_000_000_000, fewest=60)


class Found:
    """What the turns took and did, by side; complete up to the last whole round."""

    def __init__(self, sides: Mapping[str, Side], length: Length) -> None:
        self.length, self.made = length, length.env_steps
        """Of a turn: as asked for; and the env-steps of B, perhaps more to be whole calls or updates."""
        self.turns: dict[str, list[Turn]] = {name: [] for name in sides}
        """One a round."""
        self.warmup = min(side.counters()["env_steps"] for side in sides.values())
        """Env-steps of each side before the first round, at least."""
        self.work = {name: Tally(side.counters) for name, side in sides.items()}
        self.looks = 0
        """How often all that the sides show was compared between rounds."""
        self.apart: dict[str, str] = {}
        """Side to what it showed otherwise than A; A's second instance tells whether A is like itself."""

    def note(self, round_: Mapping[str, Turn]) -> None:
        """Take down a whole round."""
        for name, turn in round_.items():
            self.turns[name].append(turn)
            self.work[name].note()
        self.made = round_[B].env_steps

    @property
    def ns(self) -> dict[str, list[float]]:
        """For an env-step, one value a round."""
        return {name: [turn.ns_per_env_step for turn in taken] for name, taken in self.turns.items()}

    @property
    def count(self) -> int:
        return len(self.turns[A])

    def ratio(self, one: str = A, other: str = B) -> Ratio:
        """By own times; over the pairs in which nobody was put off its core, where those are enough."""
        pairs = list(zip(self.turns[one], self.turns[other], strict=True))
        calm = [pair for pair in pairs if not any(turn.off_ns for turn in pair)]
        if len(calm) >= max(FEWEST_CALM, len(pairs) / CALM_SHARE):
            pairs = calm
        return ratio(*([turn.own_ns_per_env_step for turn in taken] for taken in zip(*pairs, strict=True)))

    def cpu_ratio(self) -> Ratio | None:
        """A against B by CPU time; None where a side does not say, or took none that could be seen."""
        of_a, of_b = ([turn.cpu_ns_per_env_step for turn in self.turns[side]] for side in (A, B))
        if self.count < FEWEST or not all(of_a) or not all(of_b):
            return None
        return ratio(of_a, of_b)

    def late_share(self, side: str) -> float:
        """The part of a side's CPU time that came after its clock had stopped."""
        cpu_ns = sum(turn.cpu_ns or 0 for turn in self.turns[side])
        return sum(turn.late_ns for turn in self.turns[side]) / cpu_ns if cpu_ns else 0.0

    def cpu_share(self, side: str) -> float:
        """CPU time over wall time; 2.0 is two cores busy."""
        ns = sum(turn.ns for turn in self.turns[side])
        return sum(turn.cpu_ns or 0 for turn in self.turns[side]) / ns if ns else 0.0

    def look(self, sides: Mapping[str, Side]) -> None:
        """Compare all that the sides show, which have made the same steps since the same seed."""
        shown = {name: side.seen() for name, side in sides.items()}
        self.looks += 1
        steps = self.work[A].last["env_steps"]
        for name, seen in shown.items():
            differing = [field for field in {**shown[A], **seen} if shown[A].get(field) != seen.get(field)]
            if differing:
                self.apart[name] = f"{', '.join(differing)} after {steps:,} env-steps, between timed turns"


def orders(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Orders in blocks, in each of which no side is earlier than another on the whole.

    A block is all orders, shuffled; of more than three sides it is a shuffled one and its mirror image.
    """
    shuffled = random.Random(ORDER_SEED)
    while True:
        if len(names) <= MOST_PERMUTED:
            block = list(permutations(names))
            shuffled.shuffle(block)
        else:
            order = tuple(shuffled.sample(names, len(names)))
            block = [order, order[::-1]]
        yield from block


def rounds_of(turns: Mapping[str, Callable[[], Taken]]) -> Iterator[dict[str, Taken]]:
    """Round after round, without end: every side takes its turn once, and its name is given what it took.

    What a side left for the garbage collector is collected before the next one's clock starts.
    """
    for order in orders(tuple(turns)):
        round_ = dict[str, Taken]()
        for name in order:
            round_[name] = turns[name]()
            collect_rest()
        yield round_


def turns_of(sides: Mapping[str, Side], length: Length) -> dict[str, Callable[[], Turn]]:
    """The turn of every side, of as many env-steps, after as many that nobody times."""
    return {name: partial(side.turn, *length) for name, side in sides.items()}


def grain_of(sides: Mapping[str, Side]) -> int:
    """The fewest env-steps that every side can make to the digit; where that is far more, one side's."""
    grains = [side.grain for side in sides.values()]
    shared, largest = math.lcm(*grains), max(grains)
    return shared if shared <= MOST_GRAINS * largest else largest


def whole(env_steps: float, grain: int) -> int:
    """As many, made of whole grains; at least one."""
    return max(1, int(env_steps / grain)) * grain


def warm_up(
    sides: Mapping[str, Side],
    budget_ns: int = WARMUP_NS,
    progress: Progress = silent,
    *,
    turn_ns: int = TURN_NS,
) -> Length:
    """Play every side equally far until the time is over; returns the length of a turn that fits them all.

    All make the same steps, so that they stand at the same place of their episodes when the clock starts.
    """
    begin, grain = now_ns(), grain_of(sides)
    env_steps, all_ns = grain, budget_ns * len(sides)
    quickest = dict.fromkeys(sides, math.inf)
    while True:
        for name, side in sides.items():
            quickest[name] = min(quickest[name], side.turn(env_steps, 0).ns_per_env_step)
            collect_rest()
            progress(0, 1)
        mean_ns = fmean(quickest.values())
        fits = whole(turn_ns / mean_ns, grain)
        if now_ns() - begin >= all_ns:
            return length_of(fits, mean_ns, grain)
        env_steps = min(2 * env_steps, fits)


def length_of(env_steps: int, ns_per_env_step: float, grain: int) -> Length:
    """A turn of so many env-steps and what is played before it: a tenth, but nothing before a long one."""
    if env_steps * ns_per_env_step >= LONG_NS:
        return Length(env_steps)
    return Length(env_steps, -(-env_steps // (RUN_IN * grain)) * grain)


def take_turns(
    sides: Mapping[str, Side],
    plan: Plan,
    found: Found,
    progress: Progress,
    *,
    begin_ns: int | None = None,
    equal: bool = False,
) -> None:
    """Measure round after round until the interval is narrow enough or the time is over.

    `begin_ns` is when the time began, if that was before: with the warm-up. `equal` says that the sides
    must show the same after as many steps: they are looked at between rounds, and parted ones end it.
    """
    first = now_ns()
    begin = first if begin_ns is None else begin_ns
    chance, looking_ns = random.Random(ORDER_SEED), 0
    for round_ in rounds_of(turns_of(sides, found.length)):
        found.note(round_)
        now = now_ns()
        progress(min(now - begin, plan.budget_ns), plan.budget_ns)
        over = is_over(found, plan, now - begin, (now - first) / found.count)
        due = chance.randrange(LOOK_IN) == 0 and looking_ns <= LOOK_SHARE * (now - first)
        if equal and (due or over or found.count == 1):
            found.look(sides)
            looking_ns += now_ns() - now
        if over or found.apart:
            return


def is_over(found: Found, plan: Plan, spent_ns: int, round_ns: float = 0.0) -> bool:
    """Whether no round fits any more, or all is settled between blocks, where all orders came as often.

    Where blocks are short, the end of the last one is waited for.
    """
    between = found.count % BLOCK == 0
    if spent_ns + round_ns > plan.budget_ns:
        return between or round_ns * BLOCK * SHORT_BLOCKS > plan.budget_ns
    enough = between and found.count >= max(plan.fewest, FEWEST)
    return enough and half_width(found.ratio()) <= plan.settled
