"""Comparison of two sides that were measured one after the other, which takes much more doubt than pairs."""

from collections.abc import Sequence
from statistics import median

from hotloop.core.record import Ratio
from hotloop.stats.sign import sign_interval
from hotloop.stats.summary import variation

ONE_MISS_IN = 40
"""Of each median's interval: 2.5% and 2.5%, so that both hold together in 95% of cases."""

FEWEST = 7
"""Values of each side for such an interval."""

SPREADS = 2.0
"""How many coefficients of variation the level of a machine may have moved from one run to the next."""


def apart(a_ns: Sequence[float], b_ns: Sequence[float], *, doubt: float = 1.0) -> Ratio | None:
    """How many times as long A took as B, by their medians; None where either has fewer than seven values.

    The interval reaches from the lowest to the highest ratio that the intervals of both medians allow, and
    then further by the spread between runs. That spread cannot be seen from one run a side: rounds of
    one run are alike in all that moves slowly, such as heat, neighbours and where memory came to lie. The
    spread between rounds, which can be seen, grows with the same causes and stands in for it, the larger of
    the two sides' and twice, since both sides may have moved. `doubt` is a factor for what else is known.
    """
    around_a, around_b = sign_interval(a_ns, ONE_MISS_IN), sign_interval(b_ns, ONE_MISS_IN)
    if around_a is None or around_b is None:
        return None
    doubt *= 1 + SPREADS * max(variation(a_ns) or 0.0, variation(b_ns) or 0.0)
    return Ratio(
        estimate=median(a_ns) / median(b_ns),
        low=around_a[0] / around_b[1] / doubt,
        high=around_a[1] / around_b[0] * doubt,
        pairs=0,
    )
