"""Sides that take turns: measured close together, round by round, until it is settled."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeVar

from hotloop.core.clock import now_ns
from hotloop.core.progress import Progress
from hotloop.core.record import A, B, Ratio
from hotloop.envs.subject import Subject
from hotloop.judge.compare import BAND
from hotloop.lab.measure.policy import Play, play_of
from hotloop.lab.measure.rounds import calls_for
from hotloop.lab.measure.stepping import play
from hotloop.lab.measure.work import Tally
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
"""For each side."""

ORDER_SEED = 20_240_229

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

    @property
    def ns_per_env_step(self) -> float:
        return self.ns / self.env_steps


class Side(Protocol):
    """Something that can run a round of n env-steps, or more by a part of a call, and count its work."""

    name: str

    def turn(self, env_steps: int) -> Turn:
        """Run and time that many, after a short stretch that nobody times."""

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

    def turn(self, env_steps: int) -> Turn:
        calls = calls_for(env_steps, self.subject)
        run_in = -(-calls // RUN_IN)
        play(self.subject, self.script.draw(run_in), run_in)
        drawn, before = self.script.draw(calls), self.subject.phase_totals()
        ns = play(self.subject, drawn, calls)
        phases = {name: total - before[name] for name, total in self.subject.phase_totals().items()}
        return Turn(ns, calls * self.subject.spec.num_envs, phases)

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
    """What one run may take after the warm-up; a verdict of slower takes a second one."""
    fewest: int = 30
    """Rounds before an interval is looked at."""

    @property
    def settled(self) -> float:
        """The half-width of an interval at which it is narrow enough."""
        return self.band / 2


USUAL = Plan()

THOROUGH = Plan(band=BAND / 2, budget_ns=60_000_000_000, fewest=60)


class Found:
    """What the turns took and did, by side; complete up to the last whole round."""

    def __init__(self, sides: Mapping[str, Side], env_steps: int) -> None:
        self.env_steps = self.made = env_steps
        """In a turn: asked for, and made by B, which may be more to be whole calls or updates."""
        self.ns: dict[str, list[float]] = {name: [] for name in sides}
        """For an env-step, one value a round."""
        self.warmup = min(side.counters()["env_steps"] for side in sides.values())
        """Env-steps of each side before the first round, at least."""
        self.work = {name: Tally(side.counters) for name, side in sides.items()}

    def note(self, round_: Mapping[str, Turn]) -> None:
        """Take down a whole round."""
        for name, turn in round_.items():
            self.ns[name].append(turn.ns_per_env_step)
            self.work[name].note()
        self.made = round_[B].env_steps

    @property
    def count(self) -> int:
        return len(self.ns[A])

    def ratio(self, one: str = A, other: str = B) -> Ratio:
        return ratio(self.ns[one], self.ns[other])


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
    """Round after round, without end: every side takes its turn once, and its name is given what it took."""
    for order in orders(tuple(turns)):
        yield {name: turns[name]() for name in order}


def turns_of(sides: Mapping[str, Side], env_steps: int) -> dict[str, Callable[[], Turn]]:
    """The turn of every side, of as many env-steps."""
    return {name: partial(side.turn, env_steps) for name, side in sides.items()}


def warm_up(sides: Mapping[str, Side], budget_ns: int = WARMUP_NS) -> int:
    """Run every side until it is warm; returns the env-steps of a turn that all of them fit into."""
    quickest = []
    for side in sides.values():
        begin, turns = now_ns(), [side.turn(1)]
        while now_ns() - begin < budget_ns:
            turns.append(side.turn(env_steps_of(turns)))
        quickest.append(min(turn.ns_per_env_step for turn in turns))
    return max(1, int(TURN_NS * len(quickest) / sum(quickest)))


def env_steps_of(turns: Sequence[Turn]) -> int:
    """How many env-steps a turn has room for, going by those there were."""
    return max(1, int(TURN_NS / min(turn.ns_per_env_step for turn in turns)))


def take_turns(sides: Mapping[str, Side], plan: Plan, found: Found, progress: Progress) -> None:
    """Measure round after round until the interval is narrow enough or the time is over."""
    begin = now_ns()
    for round_ in rounds_of(turns_of(sides, found.env_steps)):
        found.note(round_)
        spent = now_ns() - begin
        progress(min(spent, plan.budget_ns), plan.budget_ns)
        if is_over(found, plan, spent):
            return


def is_over(found: Found, plan: Plan, spent_ns: int) -> bool:
    """Only between blocks, where all orders came as often, and not before there is an interval."""
    if found.count < FEWEST or found.count % BLOCK:
        return False
    return spent_ns > plan.budget_ns or (
        found.count >= plan.fewest and half_width(found.ratio()) <= plan.settled
    )
