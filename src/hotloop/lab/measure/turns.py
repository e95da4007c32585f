"""Sides that take turns: measured close together, round by round."""

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import permutations
from statistics import fmean
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeVar

from hotloop.core.clock import now_ns
from hotloop.core.progress import Progress, silent
from hotloop.envs.subject import Subject
from hotloop.lab.measure.policy import Play, play_of
from hotloop.lab.measure.rounds import calls_for
from hotloop.lab.measure.stepping import accounted, collect_rest, play
from hotloop.lab.validate.equal import field_hashes, is_ignored

RUN_IN = 10
"""One in so many calls of a turn is made before its clock starts: the side before left its own caches."""

NO_PHASES: Mapping[str, int] = MappingProxyType({})

TURN_NS = 750_000
"""What a turn takes about, the mean over the sides, where a call is no longer than that.

The closer in time, the more alike what disturbs them; and so short a turn mostly ends before its core is
given to somebody else, which the scheduler does after some milliseconds.
"""

WARMUP_NS = 150_000_000
"""For each side."""

LONG_NS = 50_000_000
"""From which on a turn needs no run-in: caches are warm long before it ends."""

MOST_GRAINS = 16
"""How many times the longest grain the env-steps may be that all sides can make to the digit."""

BLOCK = 6
"""Rounds in which every order of three sides comes once."""

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
        return max(self.ns - self.off_ns, 1) / self.env_steps

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

    def __init__(self, name: str, subject: Subject, policy: str, *, ignore: Sequence[str] = ()) -> None:
        self.name, self._ignore = name, ignore
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
        phases = {name: ns - before.get(name, 0) for name, ns in self.subject.phase_totals().items()}
        env_steps = calls * self.subject.spec.num_envs
        return Turn(took.ns, env_steps, phases, took.cpu_ns, took.late_ns, took.off_ns)

    def seen(self) -> Mapping[str, str]:
        return {
            name: told
            for name, told in field_hashes(self.subject).items()
            if not is_ignored(name, self._ignore)
        }

    def counters(self) -> Mapping[str, int]:
        return {name: count - self._before.get(name, 0) for name, count in self.subject.counters.items()}

    def close(self) -> None:
        self.script.close()
        self.subject.close()


def orders(names: tuple[str, ...], seed: int | None = None) -> Iterator[tuple[str, ...]]:
    """Orders in blocks, in each of which no side is earlier than another on the whole.

    A block is all orders, shuffled; of more than three sides it is a shuffled one and its mirror image. Every
    run has its own: one and the same would favour one and the same side in all of them.
    """
    chance, last = random.Random(seed), ""
    while True:
        if len(names) <= MOST_PERMUTED:
            block = shuffled(list(permutations(names)), last, chance)
        else:
            order = tuple(chance.sample(names, len(names)))
            block = [order, order[::-1]]
        yield from block
        last = block[-1][-1]


def shuffled(block: list[tuple[str, ...]], last: str, chance: random.Random) -> list[tuple[str, ...]]:
    """A block in which nobody takes two turns in a row, whose second would find its caches warm.

    Of two sides in a balanced order one always does, and either as often.
    """
    while True:
        chance.shuffle(block)
        ends = [last, *(order[-1] for order in block)]
        if len(block[0]) < MOST_PERMUTED or all(
            end != order[0] for end, order in zip(ends, block, strict=False)
        ):
            return block


def rounds_of(
    turns: Mapping[str, Callable[[], Taken]], seed: int | None = None
) -> Iterator[dict[str, Taken]]:
    """Round after round, without end: every side takes its turn once, and its name is given what it took.

    What a side left for the garbage collector is collected before the next one's clock starts.
    """
    for order in orders(tuple(turns), seed):
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
