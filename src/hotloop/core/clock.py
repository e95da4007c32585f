"""The one place time comes from: a steady clock to measure with, and a calendar to date results with."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

now_ns = time.perf_counter_ns  # Nanoseconds of a clock that only goes forward; only differences mean anything

cpu_ns = time.process_time_ns  # Nanoseconds of CPU time that all threads of this process have used

thread_ns = time.thread_time_ns  # Nanoseconds of CPU time that the calling thread has used


def utc_now() -> datetime:
    """The date and time now, in UTC; for names and records, never for measuring."""
    return datetime.now(UTC)


def epoch_ns(tries: int = 20) -> int:
    """What the calendar said, in ns since 1970, when the steady clock was zero; good to a few microseconds.

    For events that another program dated. The calendar is read between two readings of the steady clock, and
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


def clock_cost_ns(reads: int = 2_000, clock: Callable[[], int] = now_ns) -> float:
    """What one reading of a clock takes here and now, the steady one where none is named."""
    begin = now_ns()
    for _ in range(reads):
        clock()
    return (now_ns() - begin) / reads
