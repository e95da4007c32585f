"""What a comparison of distributions found: differences, or how large they can be; never equality."""

from dataclasses import dataclass
from math import log

from hotloop.core.record.plain import Amount, Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """One thing that both sides were compared in."""

    what: str
    """`return`, `observation 3 below 0.25`, `reward after action 1 in state 17`, ..."""
    policy: str
    difference: float
    """Candidate less reference, in its own unit."""
    low: float
    high: float
    """Of an interval that holds for all that were compared at once."""
    seen_from: Amount
    """The size from which a difference would have been found four times in five."""
    spread: Amount
    """How much the thing itself varies, in the same unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Things of one kind, compared under one policy."""

    name: str
    """`return`, `length`, `rewards`, `observations`, `transitions by action`, `transitions by state`."""
    policy: str
    compared: Count
    bound: Amount
    """No difference is larger, in spreads, but those that were found; 0 where all were."""
    seen_from: Amount
    """In spreads: that of the worst one."""
    worst: Contrast
    """The one with that bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistical:
    """Two sides by the distributions of what they do."""

    against: str
    pairs: Count
    """Episodes of each side and policy, in pairs of the same seed and the same chances of the policy."""
    needed: Count
    """Pairs below which nothing can be told."""
    policies: tuple[str, ...]
    one_false_in: Count
    """How rarely anything at all is found once where there is no difference; it has to be found twice."""
    margin: Amount
    """In spreads: differences that are smaller do not count."""
    groups: tuple[Group, ...]
    differences: tuple[Contrast, ...] = ()
    """Found twice, as they were the second time; the largest, in their errors, first."""
    once: Count = 0
    """Found the first time and not again."""
    trained_steps: Count = 0
    """Env-steps that each side's own policy was trained for; 0 where no policy was transferred."""

    @property
    def rarest(self) -> int:
        """Episodes in which something must come once so as to be seen, but in 1 of `one_false_in` cases."""
        return int(self.pairs / log(self.one_false_in))

    @property
    def compared(self) -> int:
        return sum(group.compared for group in self.groups)
