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


def epoch_ns(tries: int = 20) -> int:
    """What the calendar said, in ns since 1970, when the steady clock was zero; good to a few microseconds.

    For events that somebody else dated. The calendar is read between two readings of the steady clock, and
    the try whose two are closest counts.
    """
    found = []
    for _ in range(tries):
        before = now_ns()
        date = utc_now()
        after = now_ns()
        found.append((after - before, date, (before + after) // 2))
    _, date, then = min(found)
    since = date - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000 - then


def clock_cost_ns(reads: int = 2_000) -> float:
    """What one reading of the steady clock takes here and now."""
    begin = now_ns()
    for _ in range(reads):
        now_ns()
    return (now_ns() - begin) / reads
