"""Looks: when a measurement that still goes on may be judged, and misleads no more often for it.

Whoever looks after every round and stops at what pleases is wrong far more often than one interval is. So the
looks are few, each at a quarter more rounds than the last, each interval is so wide that all looks
together are wrong in 1% of cases, and the one at the end in the 4% that are left (a union bound).
"""

from math import ceil

# Pairs of the first look: the second smallest and the second largest of them are seldom enough wrong.
FIRST = 18

GROWTH = 1.25  # How many times as many rounds there are at the next look
LOOKS = 40  # At most: from 18 rounds on they reach beyond 100,000
EARLY_MISS_IN = 4_000  # How rarely the interval of one look may miss
FINAL_MISS_IN = 25  # How rarely that of the end may: together with 40 in 4,000 that is one in 20


def next_look(rounds: int, block: int = 1) -> int:
    """The rounds at which to look again, in whole blocks."""
    return ceil(max(rounds + 1, rounds * GROWTH) / block) * block
