"""Comparison of two sides measured in pairs: each round one measurement of both, close in time."""

from collections.abc import Sequence
from math import exp, log
from statistics import median

from hotloop.core.errors import InputError
from hotloop.core.record import Ratio
from hotloop.stats.sign import FEWEST, ONE_MISS_IN, sign_interval


def ratio(a_ns: Sequence[float], b_ns: Sequence[float], *, together: int = 1) -> Ratio:
    """The median of ln(tA/tB) over the pairs with its exact sign-test interval, as ratios.

    Where several are looked at `together`, the intervals hold all at once in 95% of cases (Bonferroni).
    """
    if len(a_ns) != len(b_ns):
        raise InputError(f"{len(a_ns)} times of A and {len(b_ns)} of B: each round measures both")
    if not all(time > 0 for time in (*a_ns, *b_ns)):
        raise InputError("a time of zero or less cannot be compared: make the rounds longer")
    logs = [log(a / b) for a, b in zip(a_ns, b_ns, strict=True)]
    interval = sign_interval(logs, ONE_MISS_IN * together)
    if interval is None:
        raise InputError(f"{len(a_ns)} pairs are too few for an interval: measure at least {FEWEST}")
    return Ratio(estimate=exp(median(logs)), low=exp(interval[0]), high=exp(interval[1]), pairs=len(logs))
