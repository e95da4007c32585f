"""The one place time comes from: a steady clock to measure with, and a calendar to date results with."""

import time
from datetime import UTC, datetime

now_ns = time.perf_counter_ns
"""Nanoseconds of a clock that only goes forward; only differences mean anything."""


def utc_now() -> datetime:
    """The date and time now, in UTC; for names and records, never for measuring."""
    return datetime.now(UTC)
