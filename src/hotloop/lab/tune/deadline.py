"""When a search has to be over, as it was said beforehand."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from hotloop.core.clock import now_ns


@dataclass(frozen=True, slots=True)
class Deadline:
    """So many seconds from now; None is never."""

    seconds: float | None = None
    clock: Callable[[], int] = now_ns
    begin_ns: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "begin_ns", self.clock())

    @property
    def left_s(self) -> float:
        """Below 0 where it is past."""
        return inf if self.seconds is None else self.seconds - (self.clock() - self.begin_ns) / 1e9

    def before(self, seconds: float) -> Callable[[], bool]:
        """Whether so much less than all of the time is over."""
        return lambda: self.left_s <= seconds


NEVER = Deadline()
