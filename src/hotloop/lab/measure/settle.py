"""Samples of A and B: what their turns took, how sure that is, and when no more are needed.

Sides are instances of what is compared: `a` and `again` are two of A, `b` and `b2` two of B. The first letter
of a side's name says whose it is.
"""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import ceil, exp, log
from statistics import fmean, median

from hotloop.core.clock import now_ns
from hotloop.core.progress import Progress
from hotloop.core.record.comparison import A, B, Ratio, field_words
from hotloop.core.turn_clock import WORK_NS, Turn
from hotloop.judge.compare import BAND
from hotloop.lab.measure.loop import BLOCK, Length, Plan, Samples, is_calm, measure
from hotloop.lab.measure.sides import Side
from hotloop.options.compare import THOROUGH_BUDGET_S
from hotloop.stats.summary import (
    EARLY_MISS_IN,
    FEWEST,
    FINAL_MISS_IN,
    GROWTH,
    LOOKS,
    ONE_MISS_IN,
    outcome,
    ratio,
    sign_rank,
    within_self_noise,
)

AGAIN = "again"  # A second instance of the baseline: the noise of the machine
LOOK_IN = 16  # After one in so many rounds, at random, all that the sides show is compared
LOOK_SHARE = 0.1  # Of the time, at most, that goes into that
RESTED_TURNS = 6  # Turns after a pause that are needed to say whether a pause makes a side quicker

THOROUGH = Plan(band=BAND / 2, budget_ns=round(1e9 * THOROUGH_BUDGET_S), fewest=60)


def instance(letter: str, number: int) -> str:
    """What the first, second, … instance of a contender is called."""
    return letter if number == 1 else AGAIN if (letter, number) == (A, 2) else f"{letter}{number}"


class PairedSamples(Samples):
    """Samples of A and B, held against each other round by round."""

    def __init__(self, sides: Mapping[str, Side], length: Length | None = None) -> None:
        super().__init__(sides, length)
        self.one_miss_in = FINAL_MISS_IN
        """How rarely the intervals may miss: less often where it was stopped before the end."""
        self.late_steps: Mapping[str, float] = {}
        """Side to the part of its CPU time that its processes use after a single call has returned."""
        self.looks = 0
        """How often all that the sides show was compared between rounds."""
        self.diverged: dict[str, str] = {}
        """Side to what it showed otherwise than A; A's other instances tell whether A is like itself."""

    @property
    def made(self) -> int:
        """Return the env-steps of B's turns, perhaps more than asked for to be whole calls or updates."""
        return self.turns[B][-1].env_steps if self.turns[B] else self.length.env_steps

    @property
    def ns(self) -> dict[str, list[float]]:
        """For an env-step, one value a round."""
        return {name: [turn.ns_per_env_step for turn in taken] for name, taken in self.turns.items()}

    def instances(self, letter: str) -> list[str]:
        """The sides that are of one contender."""
        return [name for name in self.turns if name.startswith(letter)]

    def ratio(self) -> Ratio | None:
        """Return all instances of A against all of B, round by round; None if there are too few rounds."""
        return self.between(self.instances(A), self.instances(B), one_miss_in=self.one_miss_in)

    def between(
        self, of_a: Sequence[str], of_b: Sequence[str], one_miss_in: int = ONE_MISS_IN
    ) -> Ratio | None:
        """Return some instances against some others; None if there are too few rounds."""
        pairs = self.pairs(of_a, of_b)
        return ratio(*zip(*pairs, strict=True), one_miss_in=one_miss_in) if len(pairs) >= FEWEST else None

    def pairs(self, of_a: Sequence[str], of_b: Sequence[str]) -> list[tuple[float, float]]:
        """Return the ns of an env-step on both sides, a pair for each round that counts.

        Rounds that something else disturbed are dropped, unless nearly all of them were.
        """
        calm = self.calm_rounds(of_a, of_b)
        if self.are_enough(calm):
            return [(self.mean_ns(n, of_a), self.mean_ns(n, of_b)) for n in calm]
        return [(self.mean_ns(n, of_a), self.mean_ns(n, of_b)) for n in range(self.count)]

    @property
    def crowded_rounds(self) -> int:
        """How many rounds something else disturbed, if they could not be dropped; else 0."""
        calm = self.calm_rounds(self.instances(A), self.instances(B))
        return 0 if self.are_enough(calm) else self.count - len(calm)

    def mean_ns(self, number: int, names: Sequence[str]) -> float:
        """Return the geometric mean of an env-step's ns over the turns of a round, calm ones if there are."""
        turns = [self.turns[name][number] for name in names]
        return exp(fmean(log(turn.ns_per_env_step) for turn in [*filter(is_calm, turns)] or turns))

    def used_ns(self) -> dict[str, list[float]]:
        """Return the ns of an env-step by side, of the turns that the ratio is made of."""
        calm = self.calm_rounds(self.instances(A), self.instances(B))
        if not self.are_enough(calm):
            return self.ns
        return {
            name: [turns[number].ns_per_env_step for number in calm if is_calm(turns[number])]
            for name, turns in self.turns.items()
        }

    def all_medians(self) -> float:
        """Return the ratio of A's to B's median over all turns, disturbed ones too."""
        a, b = (median(turn.ns_per_env_step for turn in self.all_turns(side)) for side in (A, B))
        return a / b

    def noise(self) -> Ratio | None:
        """The baseline against its own second instance."""
        return self.between([A], [AGAIN])

    def each(self) -> tuple[Ratio, ...]:
        """Every instance of A against every one of B."""
        ratios = (self.between([a], [b]) for a in self.instances(A) for b in self.instances(B))
        return tuple(each for each in ratios if each)

    def settled(self, band: float) -> bool:
        """Whether the wide interval of a look says what there is to say; then it stays the interval."""
        pairs = self.pairs(self.instances(A), self.instances(B))
        if not sign_rank(len(pairs), EARLY_MISS_IN):
            return False
        seen = self.between(self.instances(A), self.instances(B), one_miss_in=EARLY_MISS_IN)
        noise = self.noise() if AGAIN in self.turns else None
        if seen is None or outcome(seen, band) == "cannot tell":
            return False
        if AGAIN in self.turns and (noise is None or within_self_noise(seen, noise, band)):
            return False
        self.one_miss_in = EARLY_MISS_IN
        return True

    @property
    def polls(self) -> bool:
        """Whether other threads or processes of a side spin without end."""
        return any(turn.polls for side in (A, B) for turn in self.all_turns(side))

    def cpu_ratio(self) -> Ratio | None:
        """A against B by CPU time of their process trees; None if part of one only polls, or used none."""
        if self.polls:
            return None
        of_a, of_b = ([turn.cpu_ns_per_env_step for turn in self.turns[side]] for side in (A, B))
        if self.count < FEWEST or not all(of_a) or not all(of_b):
            return None
        return ratio(of_a, of_b)

    def late_share(self, letter: str) -> float:
        """The part of a contender's CPU time that came after its clock had stopped, or after one call."""
        taken = self.all_turns(letter)
        cpu_ns = sum(turn.cpu_ns for turn in taken)
        late = sum(turn.late_ns for turn in taken) / cpu_ns if cpu_ns else 0.0
        return max(late, *(self.late_steps.get(name, 0.0) for name in self.instances(letter)))

    def cpu_share(self, letter: str) -> float:
        """CPU time of the side's own process over wall time; 2.0 is two cores busy.

        What is more than one core and no more than the noise of the clocks is left out.
        """
        taken = self.all_turns(letter)
        ns = sum(turn.ns for turn in taken)
        cpu_ns = sum(turn.cpu_ns - turn.late_ns - turn.children_ns for turn in taken)
        if cpu_ns - ns <= WORK_NS * len(taken):
            cpu_ns = min(cpu_ns, ns)
        return cpu_ns / ns if ns else 0.0

    def gain_by_rest(self) -> float:
        """Return how many times as fast a pause makes the side that gains most by it; 1 if unknown."""
        gains = [1.0]
        for letter in (A, B):
            rested, others = (
                [each.ns_per_env_step for each in self.all_turns(letter) if each.rested is is_rested]
                for is_rested in (True, False)
            )
            if min(len(rested), len(others)) >= RESTED_TURNS:
                gains.append(median(others) / median(rested))
        return max(gains)

    def all_turns(self, letter: str) -> list[Turn]:
        return [turn for name in self.instances(letter) for turn in self.turns[name]]

    def first_divergence(self, letter: str) -> str | None:
        """Where an instance of a contender showed something else than A."""
        return next((self.diverged[name] for name in self.instances(letter) if name in self.diverged), None)

    def look(self, sides: Mapping[str, Side], fields: Collection[str]) -> None:
        """Compare these fields of all sides, which have made the same steps since the same seed."""
        shown = {name: side.seen() for name, side in sides.items()}
        self.looks += 1
        self.disturbed.add(self.count)  # the next one, whose first side finds its caches cold
        steps = self.work[A].last["env_steps"]
        for name, seen in shown.items():
            differing = [field for field in fields if shown[A].get(field) != seen.get(field)]
            if differing:
                self.diverged[name] = (
                    f"{field_words(differing)} after {steps:,} env-steps, between timed turns"
                )


class LookSchedule:
    """When to look at the interval: at few moments, which were laid down before anything was seen."""

    def __init__(self, fewest: int) -> None:
        self._next, self._looks = max(fewest, FEWEST), 0

    def due(self, rounds: int) -> bool:
        """Whether this is such a moment; between blocks only, where all orders came as often."""
        if rounds < self._next or rounds % BLOCK or self._looks == LOOKS:
            return False
        self._looks += 1
        self._next = ceil(max(rounds + 1, rounds * GROWTH) / BLOCK) * BLOCK
        return True


def measure_until_settled(
    sides: Mapping[str, Side],
    plan: Plan,
    samples: PairedSamples,
    progress: Progress,
    *,
    begin_ns: int | None = None,
    fields: Collection[str] | None = None,
) -> None:
    """Measure round after round until the interval says what there is to say, or the time is over.

    `fields` are those that the sides must show alike after as many steps: Hotloop compares them between
    rounds, and ends where they differ. None compares nothing.
    """
    first, looking_ns, looked_at = now_ns(), 0, 0
    chance, schedule = random.Random(), LookSchedule(plan.fewest)

    def look() -> None:
        nonlocal looking_ns, looked_at
        if fields is not None and looked_at != samples.count:
            begin, looked_at = now_ns(), samples.count
            samples.look(sides, fields)
            looking_ns += now_ns() - begin

    def look_at_times(_: Samples) -> None:
        by_chance = chance.randrange(LOOK_IN) == 0 and looking_ns <= LOOK_SHARE * (now_ns() - first)
        if by_chance or samples.count == 1:
            look()

    def is_enough(_: Samples) -> bool:
        # Workers that spin fall into a slow pace and out of it again: a few rounds would show one of the two.
        is_due = schedule.due(samples.count) and not samples.polls
        return bool(samples.diverged) or (is_due and samples.settled(plan.band))

    plan = replace(plan, stop=is_enough, length=samples.length)
    measure(sides, plan, progress, look_at_times, samples=samples, begin_ns=begin_ns)
    look()  # the last round, too
