"""Turns until it is settled: what they took, how sure that is, and when no more are needed.

Sides are instances of what is compared: `a` and `again` are two of A, `b` and `b2` two of B. The first letter
of a side's name says whose it is.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean

from hotloop.core.clock import now_ns
from hotloop.core.machine import stolen_ticks
from hotloop.core.progress import Progress
from hotloop.core.record import A, B, Ratio, field_words
from hotloop.judge.compare import BAND
from hotloop.lab.measure.turns import BLOCK, TURN_NS, Length, Side, Turn, rounds_of, turns_of
from hotloop.lab.measure.work import Tally
from hotloop.stats.intervals import FEWEST, sign_rank
from hotloop.stats.looks import EARLY_MISS_IN, FINAL_MISS_IN, FIRST, LOOKS, next_look
from hotloop.stats.ratio import drowned, outcome, ratio

AGAIN = "again"
"""A second instance of the baseline: the noise of the machine."""

ROUNDS_AT_LEAST = 60
"""That a turn is made short for, where the time is."""

WARMUP_SHARE = 8
"""Of the time there is, one part in so many goes into the warm-up of all sides at most."""

SHORT_BLOCKS = 10
"""Blocks that have to fit into the time for the last one to be waited for."""

LOOK_IN = 16
"""After one in so many rounds, at random, all that the sides show is compared."""

LOOK_SHARE = 0.1
"""Of the time, at most, that goes into that."""

FEWEST_CALM = 2 * FEWEST
CALM_SHARE = 4
"""Rounds in which somebody was left alone that are enough to leave out the rest: 12, and one in four."""

STEAL_NS = 10_000_000
"""How often the hypervisor's account is read at most, which it keeps in hundredths of a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """When a comparison is over."""

    band: float = BAND
    """Changes smaller than this are called the same."""
    budget_ns: int = 6_000_000_000
    """What one run may take with its warm-up; a verdict of faster or slower takes a second one."""
    fewest: int = FIRST
    """Rounds before an interval is looked at."""

    @property
    def turn_ns(self) -> int:
        """What a turn takes about: short enough for the rounds that are wanted."""
        return min(TURN_NS, self.budget_ns // (ROUNDS_AT_LEAST * 3))

    @property
    def settled(self) -> float:
        """The half-width of an interval at which it is narrow enough, whatever it says."""
        return self.band / 2


USUAL = Plan()

THOROUGH = Plan(band=BAND / 2, budget_ns=60_000_000_000, fewest=60)


def instance(letter: str, number: int) -> str:
    """What the first, second, … instance of a contender is called."""
    return letter if number == 1 else AGAIN if (letter, number) == (A, 2) else f"{letter}{number}"


class Found:
    """What the turns took and did, by side; complete up to the last whole round."""

    def __init__(self, sides: Mapping[str, Side], length: Length) -> None:
        self.length, self.made = length, length.env_steps
        """Of a turn: as asked for; and the env-steps of B, perhaps more to be whole calls or updates."""
        self.turns: dict[str, list[Turn]] = {name: [] for name in sides}
        """One a round."""
        self.disturbed: set[int] = set()
        """Rounds whose times are not the sides' own: time was stolen, or a look had filled the caches."""
        self.one_miss_in = FINAL_MISS_IN
        """How rarely the intervals may miss: less often where it was stopped before the end."""
        self.warmup = min(side.counters()["env_steps"] for side in sides.values())
        """Env-steps of each side before the first round, at least."""
        self.work = {name: Tally(side.counters) for name, side in sides.items()}
        self.looks = 0
        """How often all that the sides show was compared between rounds."""
        self.apart: dict[str, str] = {}
        """Side to what it showed otherwise than A; A's other instances tell whether A is like itself."""

    def note(self, round_: Mapping[str, Turn]) -> None:
        """Take down a whole round."""
        for name, turn in round_.items():
            self.turns[name].append(turn)
            self.work[name].note()
        self.made = round_[B].env_steps

    def disturb(self, since: int) -> None:
        """Take down that time was stolen somewhere in the rounds since that one."""
        self.disturbed.update(range(since, self.count))

    @property
    def ns(self) -> dict[str, list[float]]:
        """For an env-step, one value a round."""
        return {name: [turn.ns_per_env_step for turn in taken] for name, taken in self.turns.items()}

    @property
    def count(self) -> int:
        return len(self.turns[A])

    def instances(self, letter: str) -> list[str]:
        """The sides that are of one contender."""
        return [name for name in self.turns if name.startswith(letter)]

    def ratio(self) -> Ratio:
        """All instances of A against all of B, round by round and by own times."""
        return ratio(*zip(*self.pairs(), strict=True), one_miss_in=self.one_miss_in)

    def between(self, one: str, other: str) -> Ratio:
        """One instance against another."""
        return ratio(*zip(*self.pairs([one], [other]), strict=True))

    def pairs(self, one: Sequence[str] = (), other: Sequence[str] = ()) -> list[tuple[float, float]]:
        """What an env-step took on both sides, one pair a round.

        Turns in which a side was put off its core or time was stolen are left out where enough rounds
        have others on both sides.
        """
        of_a, of_b = one or self.instances(A), other or self.instances(B)
        calm = [pair for number in range(self.count) if (pair := self.pair(number, of_a, of_b, calm=True))]
        if len(calm) >= max(FEWEST_CALM, self.count / CALM_SHARE):
            return calm
        return [pair for number in range(self.count) if (pair := self.pair(number, of_a, of_b))]

    def pair(
        self, number: int, of_a: Sequence[str], of_b: Sequence[str], *, calm: bool = False
    ) -> tuple[float, float] | None:
        """The means of one round; None where a calm one is asked for and a side was never left alone."""
        if calm and number in self.disturbed:
            return None
        a, b = ([self.turns[name][number] for name in names] for names in (of_a, of_b))
        if calm:
            a, b = ([turn for turn in taken if not turn.off_ns] for taken in (a, b))
        return (mean_ns(a), mean_ns(b)) if a and b else None

    def noise(self) -> Ratio:
        """The baseline against its own second instance."""
        return self.between(A, AGAIN)

    def each(self) -> tuple[Ratio, ...]:
        """Every instance of A against every one of B."""
        return tuple(self.between(a, b) for a in self.instances(A) for b in self.instances(B))

    def settled(self, band: float) -> bool:
        """Whether the wide interval of a look says what there is to say; then it stays the interval."""
        pairs = self.pairs()
        if not sign_rank(len(pairs), EARLY_MISS_IN):
            return False
        seen = ratio(*zip(*pairs, strict=True), one_miss_in=EARLY_MISS_IN)
        if outcome(seen, band) == "cannot tell" or (
            AGAIN in self.turns and drowned(seen, self.noise(), band)
        ):
            return False
        self.one_miss_in = EARLY_MISS_IN
        return True

    def cpu_ratio(self) -> Ratio | None:
        """A against B by CPU time; None where a side does not say, or took none that could be seen."""
        of_a, of_b = ([turn.cpu_ns_per_env_step for turn in self.turns[side]] for side in (A, B))
        if self.count < FEWEST or not all(of_a) or not all(of_b):
            return None
        return ratio(of_a, of_b)

    def late_share(self, letter: str) -> float:
        """The part of a contender's CPU time that came after its clock had stopped."""
        taken = self.all_turns(letter)
        cpu_ns = sum(turn.cpu_ns or 0 for turn in taken)
        return sum(turn.late_ns for turn in taken) / cpu_ns if cpu_ns else 0.0

    def cpu_share(self, letter: str) -> float:
        """CPU time over wall time; 2.0 is two cores busy."""
        taken = self.all_turns(letter)
        ns = sum(turn.ns for turn in taken)
        return sum(turn.cpu_ns or 0 for turn in taken) / ns if ns else 0.0

    def all_turns(self, letter: str) -> list[Turn]:
        return [turn for name in self.instances(letter) for turn in self.turns[name]]

    def parted(self, letter: str) -> str | None:
        """Where an instance of a contender showed something else than A."""
        return next((self.apart[name] for name in self.instances(letter) if name in self.apart), None)

    def look(self, sides: Mapping[str, Side]) -> None:
        """Compare all that the sides show, which have made the same steps since the same seed."""
        shown = {name: side.seen() for name, side in sides.items()}
        self.looks += 1
        self.disturbed.add(self.count)  # the next one, whose first side finds its caches cold
        steps = self.work[A].last["env_steps"]
        for name, seen in shown.items():
            differing = [field for field in {**shown[A], **seen} if shown[A].get(field) != seen.get(field)]
            if differing:
                self.apart[name] = f"{field_words(differing)} after {steps:,} env-steps, between timed turns"


def mean_ns(turns: Sequence[Turn]) -> float:
    """What an env-step took of the sides' own time: the geometric mean, which no order of them changes."""
    return exp(fmean(log(turn.own_ns_per_env_step) for turn in turns))


class Schedule:
    """When to look at the interval: at few moments, which were laid down before anything was seen."""

    def __init__(self, fewest: int) -> None:
        self._next, self._looks = max(fewest, FEWEST), 0

    def due(self, rounds: int) -> bool:
        """Whether this is such a moment; between blocks only, where all orders came as often."""
        if rounds < self._next or rounds % BLOCK or self._looks == LOOKS:
            return False
        self._looks += 1
        self._next = next_look(rounds, BLOCK)
        return True


def take_turns(
    sides: Mapping[str, Side],
    plan: Plan,
    found: Found,
    progress: Progress,
    *,
    begin_ns: int | None = None,
    equal: bool = False,
) -> None:
    """Measure round after round until it is settled or the time is over.

    `begin_ns` is when the time began, if that was before: with the warm-up. `equal` says that the sides
    must show the same after as many steps: they are looked at between rounds, and parted ones end it.
    """
    first = now_ns()
    begin = first if begin_ns is None else begin_ns
    chance, looking_ns = random.Random(), 0
    schedule, theft = Schedule(plan.fewest), Theft(first)
    for round_ in rounds_of(turns_of(sides, found.length)):
        found.note(round_)
        now = now_ns()
        theft.note(found, now)
        progress(min(now - begin, plan.budget_ns), plan.budget_ns)
        over = is_over(found.count, plan, now - begin, (now - first) / found.count)
        over = over or (schedule.due(found.count) and found.settled(plan.band))
        due = chance.randrange(LOOK_IN) == 0 and looking_ns <= LOOK_SHARE * (now - first)
        if equal and (due or over or found.count == 1):
            found.look(sides)
            looking_ns += now_ns() - now
        if over or found.apart:
            return


def is_over(rounds: int, plan: Plan, spent_ns: int, round_ns: float) -> bool:
    """Whether no round fits any more; where blocks are short, the end of the last one is waited for."""
    if spent_ns + round_ns <= plan.budget_ns:
        return False
    return rounds % BLOCK == 0 or round_ns * BLOCK * SHORT_BLOCKS > plan.budget_ns


class Theft:
    """Time that a hypervisor gave to others.

    It is told in ticks, each of which may have gathered in any of the rounds since the last look.
    """

    def __init__(self, now: int) -> None:
        self._ticks, self._read_at, self._since = stolen_ticks(), now, 0

    def note(self, found: Found, now: int) -> None:
        """Mark the rounds since the last look if anything was stolen."""
        if self._ticks is None or now - self._read_at < STEAL_NS:
            return
        before, self._ticks, self._read_at = self._ticks, stolen_ticks(), now
        if self._ticks != before:
            found.disturb(self._since)
        self._since = found.count
