"""Who plays by chance, but not evenly; players.h has the same."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from hotloop.core.world import Plan

WEIGHTS = (4, 4, 26, 6, 36, 12, 4, 8)
"""Of a hundred decisions, by action."""


class Weighted:
    """Moves and gathers most of the time; what it does is decided by each agent's luck."""

    def __init__(self, plan: Plan, seen: Mapping[str, Any]) -> None:
        self.luck = seen["luck"]
        limits = tuple(accumulate(WEIGHTS))
        self.table = tuple(sum(part >= limit for limit in limits) for part in range(limits[-1]))

    def restart(self) -> None:
        """There is nothing to forget."""

    def choose(self) -> Sequence[int]:
        return [self.table[luck * len(self.table) >> 31] for luck in self.luck.tolist()]
