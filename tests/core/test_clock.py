from datetime import UTC, datetime

from hotloop.core.clock import clock_cost_ns, epoch_ns, now_ns, utc_now


def test_the_clock_never_goes_back():
    times = [now_ns() for _ in range(1000)]
    assert times == sorted(times)


def test_dates_are_in_utc():
    assert utc_now().tzinfo is UTC


def test_the_epoch_brings_the_steady_clock_and_the_calendar_together():
    before = utc_now()
    on_calendar = datetime.fromtimestamp((epoch_ns() + now_ns()) / 1e9, UTC)
    assert abs((on_calendar - before).total_seconds()) < 60


def test_reading_the_clock_costs_something():
    assert clock_cost_ns() > 0
