"""Statistics of rounds: center, spread, exact intervals, changes as they went, and the ratio of two sides."""

import math
import reprlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, combinations
from math import exp, log
from statistics import NormalDist, fmean, median, stdev
from typing import TYPE_CHECKING, Literal

from hotloop.core.errors import InputError
from hotloop.core.record import Metric, Record
from hotloop.core.record.comparison import Outcome, Ratio

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

Label = Literal["excellent", "good", "fair", "unstable", "unknown"]


LARGEST = 1e150  # Values are below it: their squares are still numbers


def summarise(values: Sequence[float]) -> Metric:
    """Return the statistics of raw values, one a round."""
    if not values or not all(abs(value) < LARGEST for value in values):
        raise InputError(f"cannot summarise {reprlib.repr(list(values))}: expected one finite number or more")
    mean = fmean(values)
    return Metric(
        median=median(values),
        mean=mean,
        cv=stdev(values) / abs(mean) if len(values) > 1 and mean else None,
        ci95=sign_interval(values),
        min=min(values),
        max=max(values),
    )


def deviation(values: Sequence[float]) -> float:
    """Return the median absolute deviation from the median."""
    centre = median(values)
    return median(abs(value - centre) for value in values)


NORMAL = 1.4826  # A standard deviation over the median absolute deviation, of normal values


def spread(values: Sequence[float]) -> float:
    """Return the standard deviation over the median, as the middle half of positive values has it."""
    return NORMAL * deviation(values) / median(values)


def label(cv: float | None) -> Label:
    """Return a word for a spread: under 5% excellent, 10 good, 20 fair, else unstable."""
    if cv is None:
        return "unknown"
    if cv < 0.05:
        return "excellent"
    if cv < 0.10:
        return "good"
    return "fair" if cv < 0.20 else "unstable"


def with_metrics(record: Record) -> Record:
    """Return the record with its metrics computed anew, for one just made or just read."""
    metrics = {name: summarise(values) for name, values in record.values.items() if values}
    return replace(record, metrics=metrics)


FEWEST = 6  # Values for 95%: of five, one side alone has none in 2 of 32 cases; of six, in 2 of 64

# How rarely the interval may miss the median by default: in 5% of cases at most.
ONE_MISS_IN = 20

RESAMPLES = 2_000

SEED = 20_240_229

TAILS = (0.025, 0.975)


def sign_interval(values: Iterable[float], one_miss_in: int = ONE_MISS_IN) -> tuple[float, float] | None:
    """The narrowest symmetric interval that misses the median so rarely; None where values are too few."""
    ordered = sorted(values)
    rank = sign_rank(len(ordered), one_miss_in)
    return (ordered[rank - 1], ordered[-rank]) if rank else None


@cache
def sign_rank(count: int, one_miss_in: int = ONE_MISS_IN) -> int:
    """Return the largest k whose interval misses rarely enough; 0 if even the extremes miss too often."""
    rank, misses, term = 0, 0, 1  # of 2**count equally likely outcomes, on one side
    while 2 * one_miss_in * (misses + term) <= 2**count:
        misses += term
        term = term * (count - rank) // (rank + 1)
        rank += 1
    return rank


def share_interval(share: float, samples: int) -> str:
    """Return the interval of a share of so many samples as text; empty if there are none."""
    around = wilson_interval(share * samples, samples) if samples else None
    return f"[{around[0]:.1%}, {around[1]:.1%}]" if around else ""


def wilson_interval(wins: float, count: int) -> tuple[float, float]:
    """Return the interval of a share in 95% of cases, by Wilson's score; a draw is half a win."""
    if count == 0:
        return 0.0, 1.0
    z = 1.959963984540054
    share, spread = wins / count, z * z / count
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * (share * (1 - share) / count + spread / (4 * count)) ** 0.5
    return max(centre - half, 0.0), min(centre + half, 1.0)


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The interval that holds the mean in 95% of cases (percentile bootstrap); None below six values."""
    if len(values) < FEWEST:
        return None
    import numpy as np

    draws = np.random.default_rng(SEED)
    given = np.asarray(values, float)
    means = [given[draws.integers(given.size, size=given.size)].mean() for _ in range(RESAMPLES)]
    low, high = np.quantile(means, TAILS)
    return float(low), float(high)


# Pairs of the first look: the second smallest and the second largest of them are seldom enough wrong.
FIRST = 18

GROWTH = 1.25  # How many times as many rounds there are at the next look
LOOKS = 40  # At most: from 18 rounds on they reach beyond 100,000
EARLY_MISS_IN = 4_000  # How rarely the interval of one look may miss
FINAL_MISS_IN = 25  # How rarely that of the end may: together with 40 in 4,000 that is one in 20


SUSPECT = 0.01  # The p below which a drift or a new level is told: one false alarm in a hundred quiet runs
EXACT_UP_TO = 100  # Values; above it the normal approximation is right to a thousandth
COLD_ROUNDS = 3  # Rounds that a cold start may spoil

# Distance of a cold first round from the others, in their standard deviations as the MAD estimates them.
COLD_SPREADS = 6.0

SMALLEST = 0.01  # Of the median: a cold start that costs less is not worth a word


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A trend over the rounds."""

    change: float  # From the first round to the last by the Theil-Sen slope, as a share of the median
    p: float  # How often rounds in random order would rise or fall as steadily (Kendall, two-sided)

    @property
    def suspect(self) -> bool:
        return self.p < SUSPECT


def drift(values: Sequence[float]) -> Drift:
    """Test for a steady rise or fall; takes the square of the number of values in time."""
    pairs = list(combinations(range(len(values)), 2))
    if not pairs:
        return Drift(change=0.0, p=1.0)
    slope = median((values[j] - values[i]) / (j - i) for i, j in pairs)
    score = sum((values[j] > values[i]) - (values[j] < values[i]) for i, j in pairs)
    centre = abs(median(values))
    change = slope * (len(values) - 1) / centre if centre else 0.0
    return Drift(change=change, p=kendall_p(len(values), abs(score)))


def warmup_suspect(values: Sequence[float]) -> bool:
    """Whether the first rounds look unlike the rest: the very first far off, or all three beyond every other.

    In random order the latter happens in 2 of C(n, 3) cases, so at least 12 rounds are asked for.
    """
    first, rest = values[:COLD_ROUNDS], values[COLD_ROUNDS:]
    if 2 / max(1, math.comb(len(values), COLD_ROUNDS)) > SUSPECT:
        return False
    spread, centre = NORMAL * deviation(rest), median(rest)
    far_off = abs(first[0] - centre) > max(COLD_SPREADS * spread, SMALLEST * abs(centre))
    apart = min(first) > max(rest) or max(first) < min(rest)
    return far_off or (apart and abs(median(first) - centre) > SMALLEST * abs(centre))


def without_warmup(values: Sequence[float]) -> tuple[float, ...]:
    """Return the values without the first ones, for as long as those look unlike the rest."""
    kept = tuple(values)
    while warmup_suspect(kept):
        kept = kept[COLD_ROUNDS:]
    return kept


def kendall_p(count: int, score: int) -> float:
    """Return the chance that a random order of `count` values has at least this |concordant - discordant|.

    Ties are counted as neither, which makes the chance too large rather than too small.
    """
    if count > EXACT_UP_TO:
        sigma = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
        return min(1.0, 2 * NormalDist().cdf(-max(0, score - 1) / sigma))
    inversions = (math.comb(count, 2) - score) // 2
    return min(1.0, 2 * sum(inversion_chances(count)[: inversions + 1]))


@cache
def inversion_chances(count: int) -> tuple[float, ...]:
    """Return the chance of each number of inversions in a random permutation of `count` values.

    The k-th value, put in last, makes 0 to k - 1 new inversions, each as likely: a moving average.
    """
    chances = [1.0]
    for k in range(2, count + 1):
        sums = list(accumulate(chances + [0.0] * (k - 1), initial=0.0))
        chances = [(sums[i] - sums[max(0, i - k)]) / k for i in range(1, len(sums))]
    return tuple(chances)


SURE = 4.0  # Standard deviations of 99.99%: a soak judges several curves, and is repeated every night
LIKELY = 1.96  # Of 95%


@dataclass(frozen=True, slots=True)
class Slope:
    """Of a series over time, with its interval."""

    estimate: float
    low: float
    high: float


def slope(times: Sequence[float], values: Sequence[float], z: float = SURE) -> Slope:
    """The slope of at least three points; the interval is Sen's, from the order of the pairs' slopes."""
    import numpy as np

    at, value = np.asarray(times, float), np.asarray(values, float)
    first, second = np.triu_indices(len(at), 1)
    apart = at[second] - at[first]
    slopes = np.sort((value[second] - value[first])[apart > 0] / apart[apart > 0])
    count, pairs = len(at), len(slopes)
    reach = z * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low, high = math.floor((pairs - reach) / 2), math.ceil((pairs + reach) / 2)
    if low < 0 or high >= pairs:
        return Slope(float(np.median(slopes)), -math.inf, math.inf)
    return Slope(float(np.median(slopes)), float(slopes[low]), float(slopes[high]))


FEWEST_LEVELS = 12  # Values below which nothing can be said of a change
LATEST = 500  # Values that are looked at, the latest: the distances of all pairs are held in memory
SIDE = 3  # Values on either side of a change, at least
SHUFFLES = 499


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A new level."""

    index: int  # Of the first value at it
    before: float  # The median since the change before it
    after: float  # The median until the next change
    p: float

    @property
    def ratio(self) -> float:
        """The new level over the old one; 1 where that is 0."""
        return self.after / self.before if self.before else 1.0


def changes(values: Sequence[float]) -> tuple[Change, ...]:
    """Return the changes among the latest values, oldest first; none where the values are too few.

    By the energy distance, as E-divisive (Matteson and James, 2014): the split whose two sides are furthest
    apart is kept where a shuffled series is hardly ever split so well, and each side is then split again.
    """
    skipped = max(0, len(values) - LATEST)
    latest = values[skipped:]
    if len(latest) < FEWEST_LEVELS:
        return ()
    import numpy as np

    series = np.asarray(latest, float)
    found = sorted(splits_by_distance(np.abs(series[:, None] - series[None, :])))
    edges = [0, *(index for index, _ in found), len(latest)]
    return tuple(
        Change(
            index=skipped + index,
            before=median(latest[edges[k] : index]),
            after=median(latest[index : edges[k + 2]]),
            p=p,
        )
        for k, (index, p) in enumerate(found)
    )


def splits_by_distance(distances: "Values") -> list[tuple[int, float]]:
    """Return where values of known distances from one another are split, and the chance of such a split."""
    import numpy as np

    if len(distances) < FEWEST_LEVELS:
        return []
    return list(divided(distances, 0, np.random.default_rng(SEED)))


def divided(distances: "Values", start: int, draws: "np.random.Generator") -> Iterator[tuple[int, float]]:
    """Split a stretch where that is no chance, and then its two sides."""
    count = len(distances)
    if count < 2 * SIDE:
        return
    at, apart = furthest(distances)
    p = chance(distances, apart, draws)
    if p > SUSPECT:
        return
    yield start + at, p
    yield from divided(distances[:at, :at], start, draws)
    yield from divided(distances[at:, at:], start + at, draws)


def furthest(distances: "Values") -> tuple[int, float]:
    """Return the split whose sides are furthest apart, and how far they are.

    Of n values before and m after it: (nm / (n + m)) * (twice the mean distance between the sides, less the
    mean distance within each).
    """
    import numpy as np

    count = len(distances)
    corner = distances.cumsum(axis=0).cumsum(axis=1)
    total = corner[-1, -1]
    n = np.arange(SIDE, count - SIDE + 1)
    m = count - n
    before = corner[n - 1, n - 1]
    across = corner[n - 1, -1] - before
    after = total - before - 2 * across
    apart = n * m / count * (2 * across / (n * m) - before / (n * (n - 1)) - after / (m * (m - 1)))
    best = int(apart.argmax())
    return int(n[best]), float(apart[best])


def chance(distances: "Values", apart: float, draws: "np.random.Generator") -> float:
    """Return how likely shuffled values are split as well; soon given up where that is clearly no rarity."""
    as_good = 0
    for _ in range(SHUFFLES):
        order = draws.permutation(len(distances))
        as_good += furthest(distances[order][:, order])[1] >= apart
        if (as_good + 1) / (SHUFFLES + 1) > SUSPECT:
            return 1.0
    return (as_good + 1) / (SHUFFLES + 1)


EACH_MISS_IN = 40  # Of each median's interval: 2.5% and 2.5%, so that both hold together in 95% of cases
FEWEST_APART = 7  # Values of each side for such an interval
SPREADS = 2.5  # How many spreads of its rounds the level of a machine may have moved from one run to the next

# How many times the difference of a side from itself a change has to be to be seen all the same.
TIMES_NOISE = 3

MOST_TIMES = 100  # How many times narrower an interval can be hoped to become: ten thousand times the rounds


def ratio(
    a_ns: Sequence[float], b_ns: Sequence[float], *, together: int = 1, one_miss_in: int = ONE_MISS_IN
) -> Ratio:
    """Return the median of ln(tA/tB) over the pairs with its exact sign-test interval, as ratios.

    Where several are looked at `together`, the intervals hold all at once as often as one (Bonferroni).
    """
    if len(a_ns) != len(b_ns):
        raise InputError(f"{len(a_ns)} times of A and {len(b_ns)} of B: each round measures both")
    if not all(time > 0 for time in (*a_ns, *b_ns)):
        raise InputError("a time of zero or less cannot be compared: make the rounds longer")
    logs = [log(a / b) for a, b in zip(a_ns, b_ns, strict=True)]
    interval = sign_interval(logs, one_miss_in * together)
    if interval is None:
        raise InputError(f"{len(a_ns)} pairs are too few for an interval: measure at least {FEWEST}")
    return Ratio(estimate=exp(median(logs)), low=exp(interval[0]), high=exp(interval[1]), pairs=len(logs))


def unpaired_ratio(a_ns: Sequence[float], b_ns: Sequence[float], *, doubt: float = 1.0) -> Ratio | None:
    """How many times as long A took as B, by their medians; None where either has fewer than seven values.

    The interval reaches from the lowest to the highest ratio that the intervals of both medians allow, and
    then further by the spread between runs. That spread cannot be seen from one run a side: rounds of
    one run are alike in all that moves slowly, such as heat, neighbours and where memory came to lie. The
    spread between rounds, which can be seen, grows with the same causes and stands in for it. A few rounds
    that took many times as long are no part of it. `doubt` is a factor for what else is known.

    The three are independent, so that their logarithms add up as squares do.
    """
    around_a, around_b = sign_interval(a_ns, EACH_MISS_IN), sign_interval(b_ns, EACH_MISS_IN)
    if around_a is None or around_b is None:
        return None
    estimate = median(a_ns) / median(b_ns)
    drift = SPREADS * max(spread(a_ns), spread(b_ns))

    def beyond(times: float) -> float:
        return exp(math.hypot(log(times), drift, log(doubt)))

    return Ratio(
        estimate=estimate,
        low=estimate / beyond(estimate * around_b[1] / around_a[0]),
        high=estimate * beyond(around_a[1] / around_b[0] / estimate),
        pairs=0,
    )


def hull(one: Ratio, other: Ratio) -> Ratio:
    """Return the first with an interval that holds both."""
    return replace(one, low=min(one.low, other.low), high=max(one.high, other.high))


def outcome(ratio: Ratio, band: float) -> Outcome:
    """Faster or slower where the whole interval is beyond the band, the same where it is inside."""
    upper = 1 + band
    if ratio.low > upper:
        return "faster"
    if ratio.high < 1 / upper:
        return "slower"
    return "same" if 1 / upper <= ratio.low and ratio.high <= upper else "cannot tell"


def confirms(found: Outcome, ratio: Ratio, band: float) -> bool:
    """Return whether B was so here too: beyond the band at its best guess, and surely not equal."""
    if found == "faster":
        return ratio.estimate > 1 + band and ratio.low > 1
    return found == "slower" and ratio.estimate < 1 / (1 + band) and ratio.high < 1


def within_self_noise(ratio: Ratio, noise: Ratio, band: float) -> bool:
    """Whether a side differs from itself, and by so much that the whole change may be no more than that."""
    if outcome(noise, band) in ("same", "cannot tell"):
        return False
    nearest = min(abs(math.log(ratio.low)), abs(math.log(ratio.high)))
    return ratio.low <= 1 <= ratio.high or nearest <= TIMES_NOISE * abs(math.log(noise.estimate))


def half_width(ratio: Ratio) -> float:
    """Half the interval's width, as a share: 0.01 is plus or minus 1%."""
    return math.sqrt(ratio.high / ratio.low) - 1


def visible(ratio: Ratio, band: float) -> float:
    """The smallest change that this many pairs, as noisy as these, would have shown beyond the band."""
    return (1 + band) * (1 + half_width(ratio)) - 1


def more_pairs(ratio: Ratio, band: float) -> int | None:
    """Return how many more would bring the interval to one side of the edge of the band; None if none would.

    An interval narrows with the square root of the pairs. It has to become narrower than the distance of
    the estimate from the nearest edge.
    """
    edge = math.log1p(band)
    distance = abs(abs(math.log(ratio.estimate)) - edge)
    width = math.log1p(half_width(ratio))
    if width > distance * MOST_TIMES:
        return None
    return max(0, math.ceil(ratio.pairs * (width / distance) ** 2) - ratio.pairs) if distance else None
