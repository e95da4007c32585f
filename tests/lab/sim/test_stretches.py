"""Speeds of a simulation, stretch by stretch."""

import pytest

from hotloop.lab.sim.sim import MOST, Stretches


@pytest.mark.parametrize("calls", [1, MOST - 1, MOST, 1_000, 12_345])
def test_stretches_are_of_equally_many_calls_and_never_too_many(calls: int) -> None:
    stretches = Stretches()
    for _ in range(calls):
        stretches.add(1_000_000, 500_000)
    speeds = stretches.speeds(2 * calls, calls)
    assert min(calls, MOST // 2) <= len(speeds) <= MOST
    assert speeds == pytest.approx([2_000.0] * len(speeds))
    assert stretches.cpu_shares == [0.5] * len(speeds)


def test_a_slow_stretch_is_seen_where_it_was() -> None:
    stretches = Stretches()
    for call in range(400):
        stretches.add(5_000 if call < 100 else 1_000, 0)
    speeds = stretches.speeds(400, 400)
    assert speeds[-1] == pytest.approx(5 * speeds[0])


def test_without_a_game_there_is_no_speed() -> None:
    stretches = Stretches()
    stretches.add(5, 5)
    assert stretches.speeds(0, 1) == stretches.speeds(1, 0) == ()
