"""Monitor: what one block of a program took, said when it ends."""

import resource
import sys
from typing import Self

from hotloop.core.clock import cpu_ns, now_ns
from hotloop.core.spans import span

MIB = 1 << 20


class Monitor:
    """What `monitor` gives: the block's duration, CPU time and memory, of this process, once it has ended."""

    __slots__ = ("_region", "cpu_ns", "name", "rss_bytes", "rss_change_bytes", "wall_ns")

    def __init__(self, name: str) -> None:
        self._region = span(name)
        self.name = name
        self.wall_ns = self.cpu_ns = self.rss_bytes = self.rss_change_bytes = 0

    def __enter__(self) -> Self:
        self._region.__enter__()
        self.rss_change_bytes = -resident_bytes()
        self.cpu_ns = -cpu_ns()
        self.wall_ns = -now_ns()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall_ns += now_ns()
        self.cpu_ns += cpu_ns()
        self.rss_bytes = resident_bytes()
        self.rss_change_bytes += self.rss_bytes
        self._region.__exit__(None, None, None)
        sys.stderr.write(f"{self}\n")

    def __str__(self) -> str:
        share = self.cpu_ns / self.wall_ns if self.wall_ns else 0.0
        return (
            f"{self.name}: {self.wall_ns / 1e9:.3f} s, CPU {self.cpu_ns / 1e9:.3f} s ({share:.0%} of a core)"
            f", memory {self.rss_bytes / MIB:.1f} MiB ({self.rss_change_bytes / MIB:+.1f})"
        )


def monitor(name: str, /) -> Monitor:
    """Say on stderr what the block of a `with` statement took.

    It prints whether or not spans are enabled; where they are, the block is a span of this name too. What
    threads of this process do meanwhile is in the CPU time and in the memory; child processes are not.
    """
    return Monitor(name)


def peak_rss_bytes() -> int:
    """The most memory this process has had in RAM."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def resident_bytes() -> int:
    """The memory of this process that is in RAM now."""
    import psutil

    resident: int = psutil.Process().memory_info().rss
    return resident
