"""Stretches of a run whose end nobody knows: equal numbers of calls, and what each took."""

from collections.abc import Sequence

MOST = 40
"""Stretches that are kept; then two become one, so that 20 of them or more are left."""


class Stretches:
    """The times of a run's calls, added up over stretches that grow with the run."""

    def __init__(self) -> None:
        self._calls = 1
        """Of a stretch."""
        self._open = self._open_ns = self._open_cpu_ns = 0
        """Calls since the last whole stretch, and what they took."""
        self._ns: list[int] = []
        self._cpu_ns: list[int] = []

    def add(self, ns: int, cpu_ns: int) -> None:
        """Take in one more call: its wall time, and the CPU time of the process."""
        self._open += 1
        self._open_ns += ns
        self._open_cpu_ns += cpu_ns
        if self._open < self._calls:
            return
        self._ns.append(self._open_ns)
        self._cpu_ns.append(self._open_cpu_ns)
        self._open = self._open_ns = self._open_cpu_ns = 0
        if len(self._ns) == MOST:
            self._ns, self._cpu_ns = in_twos(self._ns), in_twos(self._cpu_ns)
            self._calls *= 2

    @property
    def cpu_shares(self) -> Sequence[float]:
        """Return CPU time over wall time of each stretch."""
        return [cpu_ns / max(ns, 1) for cpu_ns, ns in zip(self._cpu_ns, self._ns, strict=True)]

    def speeds(self, events: float, calls: int) -> Sequence[float]:
        """Return the events per second of each stretch, if so many events came of so many calls."""
        if not events or not calls:
            return ()
        return [self._calls * events / calls * 1e9 / max(ns, 1) for ns in self._ns]


def in_twos(values: Sequence[int]) -> list[int]:
    """Return the sums of every two neighbors."""
    return [early + late for early, late in zip(values[::2], values[1::2], strict=True)]
