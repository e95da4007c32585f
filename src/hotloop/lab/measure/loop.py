"""The measuring loop: sides take turns, round by round, until a plan is done.

Every experiment is a plan for `measure`: a bench is one side, a comparison three or more, a soak one side
whose rounds are its looks. What a turn takes is never corrected; what happens to a turn that other processes
disturbed is decided here alone, by `is_calm` and `calm_or_all`.
"""

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, permutations
from statistics import fmean
from typing import Literal, NamedTuple, Protocol, Self, TypeVar

from hotloop.core.clock import now_ns
from hotloop.core.errors import Code, InputError, Notice, notice
from hotloop.core.machine import stolen_ticks
from hotloop.core.progress import Progress, silent
from hotloop.core.turn_clock import RUN_IN, Turn, collect_rest, is_work
from hotloop.envs.subject import Subject
from hotloop.judge.compare import BAND
from hotloop.lab.measure.policy import Play
from hotloop.lab.measure.sides import Side, calls_for
from hotloop.options.bench import USUAL, BenchOptions
from hotloop.options.compare import BUDGET_S
from hotloop.stats.summary import FEWEST, FIRST

# Mean length of a turn over the sides, unless one call is longer.
#
# The closer in time, the more alike what disturbs them; and so short a turn mostly ends before the scheduler
# gives its core to another process, which happens after some milliseconds.
TURN_NS = 750_000

# Length of a turn if a side works with other threads or processes.
#
# After a short turn they sleep while the other side has its own; a longer one hides that they are slow to
# wake.
CREW_TURN_NS = 25_000_000

WARMUP_NS = 150_000_000  # For each side
WARMUP_SHARE = 8  # Of the budget, one part in so many goes into the warm-up of all sides at most
LONG_NS = 50_000_000  # A turn of this length needs no run-in: caches are warm long before it ends
SINGLE_CALLS = 10  # After which a side is watched for work that goes on
MOST_GRAINS = 16  # How many times the longest grain the env-steps may be that all sides can make exactly
BLOCK = 6  # Rounds in which every order of three sides comes once
SHORT_BLOCKS = 10  # Blocks that have to fit into the time for the last one to be finished

# Sides whose orders all come before one comes again; those of more would outlast the rounds.
MOST_PERMUTED = 3

ROUNDS_AT_LEAST = 60  # Rounds that should fit into the budget: turns are shortened for them

# The rounds that come before the budget may take ten times the budget, or two minutes if that is longer.
MOST_BUDGETS, PATIENCE_NS = 10, 120_000_000_000

NO_LIMIT = 10**18  # Nanoseconds of a budget that is none: thirty years
CALM_SHARE = 4  # One round in so many has to be undisturbed, or the rest of them are no fair sample

# Shortest time between two reads of the hypervisor's account, which counts in hundredths of a second.
STEAL_NS = 10_000_000

Order = Literal["shuffled", "alternating"]

T = TypeVar("T")


class Length(NamedTuple):
    """How long the turns of all sides are."""

    env_steps: int
    run_in: int = 0  # Env-steps before the clock starts, as many on every side


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How sides are measured, and when that is over."""

    rounds: int | None = None  # None: until the time is over, or `stop` ends it
    # For all rounds and the warm-up before them; `NO_LIMIT` for as long as the rounds take.
    budget_ns: int = round(1e9 * BUDGET_S)
    min_rounds: int = FEWEST  # Rounds that come before the budget counts
    patient: bool = False  # Whether those are waited for however long they take
    block: int = BLOCK  # Rounds that belong together: the last block is finished if that is short
    order: Order = "shuffled"
    length: Length | None = None  # Of a turn; None warms the sides up and chooses one that fits all of them
    # Whether the rounds so far are enough; asked after each round that is not the last one anyway.
    stop: Callable[["Samples"], bool] = lambda _: False
    clock: Callable[[], int] = now_ns
    band: float = BAND  # Changes smaller than this are called the same
    fewest: int = FIRST  # Rounds before an interval is looked at

    @property
    def turn_ns(self) -> int:
        """Return about what a turn takes: short enough for the rounds that are wanted."""
        return min(TURN_NS, self.budget_ns // (ROUNDS_AT_LEAST * 3))

    @property
    def crew_turn_ns(self) -> int:
        """Return what a turn takes if a side works with other threads or processes."""
        return min(CREW_TURN_NS, self.budget_ns // (ROUNDS_AT_LEAST * 3))

    @property
    def patience_ns(self) -> float:
        """Return how long the rounds may take that come before the budget."""
        return math.inf if self.patient else max(PATIENCE_NS, MOST_BUDGETS * self.budget_ns)

    def warmup_ns(self, sides: int) -> int:
        """Return the time of each side's warm-up, of all of which a plan has so many."""
        return min(WARMUP_NS, self.budget_ns // (WARMUP_SHARE * sides))

    @property
    def settled(self) -> float:
        """Return the half-width of an interval at which it is narrow enough, whatever it says."""
        return self.band / 2

    def is_over(self, rounds: int, spent_ns: int, round_ns: float) -> bool:
        """Return whether the rounds are done or no other fits; if blocks are short, the last one is finished.

        The rounds that an interval needs come before the budget: a slow side is no reason to know nothing.
        """
        if self.rounds is not None and rounds >= self.rounds:
            return True
        if rounds < self.min_rounds:
            return spent_ns + round_ns * (self.min_rounds - rounds) > self.patience_ns
        if spent_ns + round_ns <= self.budget_ns:
            return False
        return rounds % self.block == 0 or round_ns * self.block * SHORT_BLOCKS > self.budget_ns


class Tally:
    """What counters gained over a stretch of a run: from `begin` to the last `note`."""

    def __init__(self, read: Callable[[], Mapping[str, int]]) -> None:
        self._read = read
        self.begin()

    def begin(self) -> None:
        self._first = self._last = self._read()

    def note(self) -> None:
        self._last = self._read()

    @property
    def last(self) -> Mapping[str, int]:
        """The counters as they were noted last."""
        return self._last

    @property
    def gained(self) -> dict[str, int]:
        """Counter to gain; one that is new counts from zero."""
        return {name: count - self._first.get(name, 0) for name, count in self._last.items()}


class Samples:
    """What the turns of all sides took and did, complete up to the last whole round."""

    def __init__(self, sides: Mapping[str, Side], length: Length | None = None) -> None:
        self.turns: dict[str, list[Turn]] = {name: [] for name in sides}
        """One a round."""
        self.disturbed: set[int] = set()
        """Rounds whose times are not the sides' own: time was stolen, or a look had filled the caches."""
        self.partial = True
        """Whether the plan is not done."""
        self.work = {name: Tally(side.counters) for name, side in sides.items()}
        self.length = length or Length(0)
        self.warmup = 0
        """Env-steps of each side before the first round, at least."""
        self.begin(self.length)

    def begin(self, length: Length) -> None:
        """Begin to count, after the warm-up."""
        self.length = length
        for tally in self.work.values():
            tally.begin()
        self.warmup = min(tally.last.get("env_steps", 0) for tally in self.work.values())

    def note(self, round_: Mapping[str, Turn]) -> None:
        """Record a whole round; Ctrl-C while the counters are read leaves it out."""
        for name in round_:
            self.work[name].note()
        for name, turn in round_.items():
            self.turns[name].append(turn)

    @property
    def count(self) -> int:
        return min(map(len, self.turns.values()))

    def calm_rounds(self, *groups: Sequence[str]) -> list[int]:
        """Return the rounds in which a side of each group had a turn that nothing else disturbed."""
        return [
            number
            for number in range(self.count)
            if number not in self.disturbed
            and all(any(is_calm(self.turns[name][number]) for name in names) for names in groups)
        ]

    def are_enough(self, calm: Sequence[int]) -> bool:
        """Return whether so many calm rounds are a fair sample of all."""
        return len(calm) >= max(FEWEST, self.count / CALM_SHARE)


def is_calm(turn: Turn) -> bool:
    """Return whether a turn counts: no other process took its core, and it began like most of its side."""
    return not turn.disturbed and not turn.rested


def calm_or_all(samples: Sequence[T], are_calm: Sequence[bool], fewest: float = FEWEST) -> list[T]:
    """Return the samples that nothing disturbed; all of them if those are too few for a fair sample."""
    calm = [each for each, is_calm in zip(samples, are_calm, strict=True) if is_calm]
    return calm if len(calm) >= fewest else list(samples)


class Stoppable(Protocol):
    """What is known of an experiment so far, and whether that is not all of it."""

    partial: bool


class Completion:
    """Whether an experiment was broken off."""

    partial = True


@contextmanager
def until_interrupted(state: Stoppable | None = None) -> Iterator[Stoppable]:
    """Run a block to its end or to Ctrl-C; `state.partial` says which it was."""
    state = Completion() if state is None else state
    try:
        yield state
        state.partial = False
    except KeyboardInterrupt:
        state.partial = True  # what was measured before it is kept


def measure(
    sides: Mapping[str, Side],
    plan: Plan,
    progress: Progress = silent,
    on_round: Callable[[Samples], None] = lambda _: None,
    *,
    samples: Samples | None = None,
    begin_ns: int | None = None,
) -> Samples:
    """Warm up, then time every side once a round until the plan is done.

    Args:
        sides: What takes turns, by name.
        plan: How long the turns are and when it is over.
        progress: Told of the rounds, or of the time if the plan has no number of rounds.
        on_round: Called after each round.
        samples: Filled in place, so that Ctrl-C leaves the rounds there were (see `until_interrupted`).
        begin_ns: When the budget began; None is now.
    """
    begin = plan.clock() if begin_ns is None else begin_ns
    samples = Samples(sides) if samples is None else samples
    length = plan.length or warm_up(sides, plan.warmup_ns(len(sides)), progress).length
    samples.begin(length)
    collect_rest()
    first = plan.clock()
    steal = StealMeter(first)
    for round_ in rounds_of(
        {name: partial(side.turn, *length) for name, side in sides.items()}, order=plan.order
    ):
        samples.note(round_)
        now = plan.clock()
        steal.note(samples, now)
        if plan.rounds is not None:
            progress(samples.count, plan.rounds)
        else:
            progress(min(now - begin, plan.budget_ns), plan.budget_ns)
        on_round(samples)
        if plan.is_over(samples.count, now - begin, (now - first) / samples.count) or plan.stop(samples):
            break
    samples.partial = False
    return samples


def rounds_of(
    turns: Mapping[str, Callable[[], T]], seed: int | None = None, *, order: Order = "shuffled"
) -> Iterator[dict[str, T]]:
    """Yield rounds without end: every side takes its turn once.

    What a side left for the garbage collector is collected before the next one's clock starts.
    """
    names = tuple(turns)
    ordered = orders(names, seed) if order == "shuffled" else cycle((names, names[::-1]))
    for each in ordered:
        round_ = dict[str, T]()
        for name in each:
            round_[name] = turns[name]()
            collect_rest()
        yield round_


def orders(names: tuple[str, ...], seed: int | None = None) -> Iterator[tuple[str, ...]]:
    """Orders in blocks, in each of which no side is earlier than another on the whole.

    A block is all orders, shuffled; of more than three sides it is a shuffled one and its mirror image. Every
    run has its own: one and the same would favour one and the same side in all of them.
    """
    chance, last = random.Random(seed), ""
    while True:
        if len(names) <= MOST_PERMUTED:
            # No side takes two turns in a row, whose second would find its caches warm; of two sides in a
            # balanced order one always does, and either as often.
            block = list(permutations(names))
            chance.shuffle(block)
            while len(names) == MOST_PERMUTED and any(
                end == order[0]
                for end, order in zip([last, *(each[-1] for each in block)], block, strict=False)
            ):
                chance.shuffle(block)
        else:
            order = tuple(chance.sample(names, len(names)))
            block = [order, order[::-1]]
        yield from block
        last = block[-1][-1]


class Warmup(NamedTuple):
    """What the turns before the first round showed."""

    length: Length  # Of a turn that fits all sides
    has_crew: bool = False  # Whether other threads or processes work in the turns of a side
    # Whether other threads or processes of a side spin without end, in the turns of others, too.
    polls: bool = False


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


class StealMeter:
    """Time that a hypervisor gave to others.

    It is counted in ticks, each of which may have gathered in any of the rounds since the last look.
    """

    def __init__(self, now: int) -> None:
        self._ticks, self._read_at, self._since = stolen_ticks(), now, 0

    def note(self, samples: Samples, now: int) -> None:
        """Mark the rounds since the last look if anything was stolen."""
        if self._ticks is None or now - self._read_at < STEAL_NS:
            return
        before, self._ticks, self._read_at = self._ticks, stolen_ticks(), now
        if self._ticks != before:
            samples.disturbed.update(range(self._since, samples.count))
        self._since = samples.count


BOXED_WARMUP_NS = 2_000_000_000

# What one round may take where it is boxed: ten seconds for the usual 20 rounds and the warm-up.
BOXED_ROUND_NS = 400_000_000

DRAWN_AT_ONCE = 256  # Calls of the warm-up whose actions are drawn together


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """A plan of measurement. Steps are env-steps: one batch call makes num_envs of them."""

    count: int = USUAL[0]  # Measured rounds; the round, not the step, is the sample
    iterations: int = USUAL[1]  # Env-steps in one round, rounded up to whole batch calls
    warmup: int = USUAL[2]  # Env-steps before the first round, thrown away and recorded
    # Whether a slow target gets shorter rounds, of as many calls as fit into 0.4 seconds.
    box_iterations: bool = True
    box_warmup: bool = True  # Whether the warm-up ends when its time is over
    of_function: bool = False  # Whether a function is measured, whose boxes are smaller: two seconds in all

    def __post_init__(self) -> None:
        for name, least in (("count", 1), ("iterations", 1), ("warmup", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}: expected at least {least}")

    @classmethod
    def from_options(cls, options: BenchOptions) -> Self:
        """Return rounds; numbers that are given are kept whatever it takes, others shrink on slow targets."""
        count, iterations, warmup = options.plan
        return cls(
            count=count,
            iterations=iterations,
            warmup=warmup,
            box_iterations=options.iterations is None,
            box_warmup=options.warmup is None,
        )

    @property
    def env_steps(self) -> int:
        """Env-steps of the whole run, warm-up included."""
        return self.warmup + self.count * self.iterations

    @property
    def warmup_ns(self) -> int:
        """What a boxed warm-up may take."""
        return BOXED_WARMUP_NS // 10 if self.of_function else BOXED_WARMUP_NS

    @property
    def round_ns(self) -> int:
        """What a boxed round may take."""
        return BOXED_ROUND_NS // 5 if self.of_function else BOXED_ROUND_NS


def warm_up_subjects(subjects: Sequence[Subject], script: Play, asked: Rounds, progress: Progress) -> Rounds:
    """Step all subjects through the same actions until they are warm; returns the rounds as they fit.

    The slowest call says nothing of how long the others take: it may have compiled them.
    """
    num_envs = subjects[0].spec.num_envs
    calls = calls_for(asked.warmup, subjects[0])
    begin, done, stepping_ns, slowest_ns = now_ns(), 0, 0, 0

    def is_over() -> bool:
        late = now_ns() - begin - slowest_ns > asked.warmup_ns
        return done >= calls or (asked.box_warmup and done > 0 and late)

    while not is_over():
        drawn = script.draw(min(DRAWN_AT_ONCE, calls - done))
        before, start = done, now_ns()
        for actions in drawn:
            called = now_ns()
            for subject in subjects[1:]:
                subject.step(deepcopy(actions))  # a side may change what it is given
            subjects[0].step(actions)
            slowest_ns = max(slowest_ns, now_ns() - called)
            done += 1
            progress(done * num_envs, asked.env_steps)
            if is_over():
                break
        for subject in subjects:
            subject.wait()
        stepping_ns += now_ns() - start
        script.put_back(drawn[done - before :])
    usual_ns = (stepping_ns - slowest_ns) / (done - 1) if done > 1 else stepping_ns
    calls = fit(calls_for(asked.iterations, subjects[0]), asked, usual_ns)
    return replace(asked, warmup=done * num_envs, iterations=calls * num_envs)


def fit(calls: int, asked: Rounds, ns_per_call: float) -> int:
    """Cut the calls of a round down to what the box has room for; one always has."""
    if not asked.box_iterations or not ns_per_call:
        return calls
    return max(1, min(calls, int(asked.round_ns / ns_per_call)))


def shortened_notices(asked: Rounds, ran: Rounds) -> list[Notice]:
    """Say so where a slow target got fewer steps than usual; of a function that is the plan."""
    if asked.of_function:
        return []
    if ran.iterations < asked.iterations and ran.box_iterations:
        return [notice(Code.SHORTENED, iterations=ran.iterations, warmup=ran.warmup)]
    if ran.warmup < asked.warmup:
        return [notice(Code.SHORT_WARMUP, warmup=ran.warmup)]
    return []
