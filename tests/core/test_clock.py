from datetime import UTC

from hotloop.core.clock import now_ns, utc_now


def test_the_clock_never_goes_back():
    times = [now_ns() for _ in range(1000)]
    assert times == sorted(times)


def test_dates_are_in_utc():
    assert utc_now().tzinfo is UTC
