import random

import pytest

from hotloop.core.record.experiments import (
    HEAP_BYTES,
    OPEN_FILES,
    OWN,
    PRINTED,
    RSS_BYTES,
    RUNNING,
    SLOWER,
    SLOWER_IN,
    SPEED,
    Soak,
)
from hotloop.judge.checks import POINTS, Curve, conclude_soak

MIB = 1 << 20


def soaked(curves: dict[str, Curve]) -> Soak:
    looks = max(map(len, curves.values()))
    return conclude_soak(Soak(seconds=1.0, env_steps=1, looks=looks, cut=0, fresh=1, trends=()), curves)


def alarms(name: str, curve: Curve) -> list[str]:
    return [each.name for each in soaked({name: curve}).alarms]


def noise(seed: int, minutes: float, a_minute: float, looks: int = 120, sigma: float = 0.05) -> Curve:
    """A logarithm of a ratio, as noisy as on a busy machine, that rises by so much."""
    chance = random.Random(seed)
    times = [60 * minutes * k / looks for k in range(looks)]
    return [(at, a_minute * at / 60 + chance.gauss(0, sigma)) for at in times]


def test_twenty_clean_soaks_of_a_minute_raise_no_alarm() -> None:
    assert [seed for seed in range(20) if alarms(SLOWER, noise(seed, 1, 0.0))] == []


def test_a_slow_down_of_3_percent_a_minute_is_found_in_five() -> None:
    found = [seed for seed in range(20) if alarms(SLOWER, noise(seed, 5, 0.03))]
    assert found == list(range(20))


def test_what_gets_faster_is_no_alarm() -> None:
    assert alarms(SLOWER, noise(1, 5, -0.03)) == []


def test_a_speed_that_sinks_with_the_machine_is_shown_and_not_judged() -> None:
    found = soaked({SPEED: [(k, 1e6 - 1e3 * k) for k in range(100)]})
    assert found.alarms == ()
    assert found.trends[0].slope == pytest.approx(-6e4)


def test_a_phase_that_grows_is_named() -> None:
    assert alarms(f"{SLOWER_IN}actions", noise(3, 5, 0.05)) == [f"{SLOWER_IN}actions"]


@pytest.mark.parametrize("name", [RSS_BYTES, HEAP_BYTES])
def test_memory_that_rises_to_the_end_is_a_leak(name: str) -> None:
    assert alarms(name, [(k, 100 * MIB + 0.1 * MIB * k) for k in range(100)]) == [name]


def test_memory_that_levels_off_is_none() -> None:
    assert alarms(RSS_BYTES, [(k, 100 * MIB + MIB * min(k, 40)) for k in range(100)]) == []


def test_memory_that_rises_by_a_trifle_or_by_what_watching_takes_is_none() -> None:
    assert alarms(RSS_BYTES, [(k, 100 * MIB + 4_096 * k) for k in range(100)]) == []
    assert alarms(RSS_BYTES, [(k, 10 * MIB + 12_000 * k) for k in range(240)]) == []


@pytest.mark.parametrize(("share", "is_own"), [(0.6, True), (0.3, True), (0.05, False), (0.0, False)])
def test_what_rises_without_steps_is_left_by_new_instances(share: float, *, is_own: bool) -> None:
    curve = [(k, 100 * MIB + 0.1 * MIB * k) for k in range(100)]
    own = [(k, share * 0.1 * MIB * k) for k in range(100)]
    [found] = soaked({RSS_BYTES: curve, f"{OWN}{RSS_BYTES}": own}).trends
    assert (found.alarm, found.by_new) == (is_own, not is_own)


@pytest.mark.parametrize("name", [OPEN_FILES, RUNNING])
def test_files_and_threads_that_become_more_are_found(name: str) -> None:
    assert alarms(name, [(k, 20 + k // 5) for k in range(100)]) == [name]
    assert alarms(name, [(k, 20 + (k > 50)) for k in range(100)]) == []


def test_a_printed_speed_that_sinks_is_found() -> None:
    name = f"{PRINTED}sps"
    assert alarms(name, [(k, 1_000 - 2 * k) for k in range(100)]) == [name]
    assert alarms(name, [(k, 1_000 + 2 * k) for k in range(100)]) == []


def test_few_looks_cannot_tell() -> None:
    found = soaked({RSS_BYTES: [(k, 100 * MIB * k) for k in range(10)]})
    assert not found.enough
    assert found.alarms == ()


def test_a_curve_is_kept_in_few_points_to_its_end() -> None:
    [found] = soaked({RSS_BYTES: [(k, float(k)) for k in range(1_000)]}).trends
    assert len(found.curve) <= POINTS + 1
    assert found.curve[-1] == (999, 999.0)
