"""How many times as long one side took as another, in pairs or apart, and what that allows to say."""

import math
from collections.abc import Sequence
from dataclasses import replace
from math import exp, log
from statistics import median

from hotloop.core.errors import InputError
from hotloop.core.record.comparison import Outcome, Ratio
from hotloop.stats.summary import FEWEST, ONE_MISS_IN, sign_interval, spread

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
