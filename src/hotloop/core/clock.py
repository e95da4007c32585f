"""The one place time comes from: a steady clock to measure with, and a calendar to date results with."""

import time
from datetime import UTC, datetime

now_ns = time.perf_counter_ns
"""Nanoseconds of a clock that only goes forward; only differences mean anything."""

cpu_ns = time.process_time_ns
"""Nanoseconds of CPU time that all threads of this process have used."""


def utc_now() -> datetime:
    """The date and time now, in UTC; for names and records, never for measuring."""
    return datetime.now(UTC)


def clock_cost_ns(reads: int = 2_000) -> float:
    """What one reading of the steady clock takes here and now."""
    begin = now_ns()
    for _ in range(reads):
        now_ns()
    return (now_ns() - begin) / reads
