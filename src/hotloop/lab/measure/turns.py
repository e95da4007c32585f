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
from hotloop.core.turn_clock import Stretch, TurnClock, is_work
from hotloop.envs.env_by_env import EnvByEnv
from hotloop.envs.subject import Subject
from hotloop.lab.measure.policy import Play, play_of
from hotloop.lab.measure.rounds import calls_for
from hotloop.lab.measure.stepping import collect_rest, play
from hotloop.lab.validate.equal import field_hashes, is_ignored
from hotloop.lab.validate.streams import Streams

RUN_IN = 10
"""One in so many calls of a turn is made before its clock starts: the side before left its own caches."""

NO_PHASES: Mapping[str, int] = MappingProxyType({})

TURN_NS = 750_000
"""What a turn takes about, the mean over the sides, where a call is no longer than that.

The closer in time, the more alike what disturbs them; and so short a turn mostly ends before its core is
given to somebody else, which the scheduler does after some milliseconds.
"""

CREW_TURN_NS = 25_000_000
"""What a turn takes if a side works with other threads or processes.

After a short turn they sleep while the other side has its own; a longer one hides that they are slow to wake.
"""

WARMUP_NS = 150_000_000
"""For each side."""

LONG_NS = 50_000_000
"""From which on a turn needs no run-in: caches are warm long before it ends."""

SINGLE_CALLS = 10
"""After which a side is watched for work that goes on."""

MOST_GRAINS = 16
"""How many times the longest grain the env-steps may be that all sides can make to the digit."""

BLOCK = 6
"""Rounds in which every order of three sides comes once."""

MOST_PERMUTED = 3
"""Sides whose orders all come before one comes again; those of more would outlast the rounds."""

Taken = TypeVar("Taken")
"""What one turn gives."""


class Turn(NamedTuple):
    """One timed stretch of one side; the fields of `Stretch`, and what was done in it."""

    ns: int
    env_steps: int
    phases: Mapping[str, int] = NO_PHASES
    """Nanoseconds in each, and in `step` as a whole; empty where nothing is timed."""
    rested: bool = False
    """Whether the side's pollers had a pause before it."""
    cpu_ns: int = 0
    others_ns: int = 0
    children_ns: int = 0
    late_ns: int = 0
    late_children_ns: int = 0
    disturbed: bool = False
    polls: bool = False

    @property
    def ns_per_env_step(self) -> float:
        return self.ns / self.env_steps

    @property
    def cpu_ns_per_env_step(self) -> float:
        return self.cpu_ns / self.env_steps


def turn_of(
    took: Stretch, env_steps: int, phases: Mapping[str, int] = NO_PHASES, *, rested: bool = False
) -> Turn:
    """Return a timed stretch as the turn of so many env-steps."""
    return Turn(env_steps=env_steps, phases=phases, rested=rested, **took._asdict())


class Length(NamedTuple):
    """How long the turns of all sides are."""

    env_steps: int
    run_in: int = 0
    """Env-steps before the clock starts, as many on every side."""


class Warmup(NamedTuple):
    """What the turns before the first round showed."""

    length: Length
    """Of a turn that fits all sides."""
    has_crew: bool = False
    """Whether other threads or processes work in the turns of a side."""
    polls: bool = False
    """Whether other threads or processes of a side spin without end, in the turns of others, too."""


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
        self.subject = self._shown = subject
        self.script: Play = play_of(policy, subject)
        self._clock = TurnClock(id(subject))
        self._before = subject.counters
        """What it did before it became a side."""
        self._streams = Streams([subject], subject.spec.seed)  # the other sides take none of its numbers
        with self._streams.of(subject):
            subject.reset()

    @property
    def grain(self) -> int:
        grain: int = getattr(self.subject, "grain", self.subject.spec.num_envs)
        return grain

    def turn(self, env_steps: int, run_in: int | None = None) -> Turn:
        with self._streams.of(self.subject):
            return self._turn(env_steps, run_in)

    def _turn(self, env_steps: int, run_in: int | None) -> Turn:
        calls = calls_for(env_steps, self.subject)
        ahead = -(-calls // RUN_IN) if run_in is None else calls_for(run_in, self.subject)
        if ahead:
            play(self.subject, self.script.draw(ahead), ahead)
        drawn, rested = self.script.draw(calls), self._clock.rest()
        before = self.subject.phase_totals()
        took = self._clock.time(partial(play, self.subject, drawn, calls))
        phases = {name: ns - before.get(name, 0) for name, ns in self.subject.phase_totals().items()}
        env_steps = calls * self.subject.spec.num_envs
        return turn_of(took, env_steps, phases, rested=rested)

    def show_env_by_env(self, autoreset: str) -> None:
        """Show from now on what a side of another interface shows too."""
        self._shown = EnvByEnv([self.subject], autoreset)

    def seen(self) -> Mapping[str, str]:
        return {
            name: told
            for name, told in field_hashes(self._shown, narrow=self._shown is not self.subject).items()
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
    crew_turn_ns: int = CREW_TURN_NS,
) -> Warmup:
    """Play every side equally far until the time is over.

    All make the same steps, so that they stand at the same place of their episodes when the clock starts.
    """
    begin, grain = now_ns(), grain_of(sides)
    env_steps, all_ns = grain, budget_ns * len(sides)
    quickest = dict.fromkeys(sides, math.inf)
    wall_ns, others_ns = (dict.fromkeys(sides, 0) for _ in range(2))
    polls = False
    while True:
        for name, side in sides.items():
            turn = side.turn(env_steps, 0)
            polls |= turn.polls
            quickest[name] = min(quickest[name], turn.ns_per_env_step)
            wall_ns[name] += turn.ns
            others_ns[name] += turn.others_ns
            collect_rest()
            progress(0, 1)
        # Over all turns so far: a single one may be disturbed between the readings of two clocks.
        has_crew = any(is_work(others_ns[name], wall_ns[name]) for name in sides)
        mean_ns = fmean(quickest.values())
        fits = whole((max(turn_ns, crew_turn_ns) if has_crew else turn_ns) / mean_ns, grain)
        if now_ns() - begin >= all_ns:
            return Warmup(length_of(fits, mean_ns, grain), has_crew, polls)
        env_steps = min(2 * env_steps, fits)


def late_shares(sides: Mapping[str, Side], budget_ns: int) -> dict[str, float]:
    """Return the part of each side's CPU time that its processes use after a single call has returned.

    In a long turn, work that a call leaves behind is done while the next calls run.
    """
    begin, grain = now_ns(), grain_of(sides)
    cpu_ns, late_ns = (dict.fromkeys(sides, 0) for _ in range(2))
    for _ in range(SINGLE_CALLS):
        for name, side in sides.items():
            turn = side.turn(grain, 0)
            cpu_ns[name] += turn.cpu_ns
            late_ns[name] += turn.late_children_ns
        if now_ns() - begin > budget_ns:
            break
    return {name: late_ns[name] / max(cpu_ns[name], 1) for name in sides}


def length_of(env_steps: int, ns_per_env_step: float, grain: int) -> Length:
    """A turn of so many env-steps and what is played before it: a tenth, but nothing before a long one."""
    if env_steps * ns_per_env_step >= LONG_NS:
        return Length(env_steps)
    return Length(env_steps, -(-env_steps // (RUN_IN * grain)) * grain)
