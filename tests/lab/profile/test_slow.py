from dataclasses import replace

import numpy as np
from support.logged import events_of, laps_of, steps_of

from hotloop.lab.profile.calls import Calls, Preemptions, calls_of_batch, calls_of_loop
from hotloop.lab.profile.slow import KEPT, SlowestCalls

CHECK = (99, "abcd")


def calls_of(*wall_ns: int, resets: tuple[int, ...] = ()) -> Calls:
    """Laps of these lengths, one after another."""
    times = [0, *np.cumsum(wall_ns).tolist()]
    counts = np.array(resets or (0,) * len(wall_ns), np.int64)
    return calls_of_loop(laps_of(*times), events_of(), None, counts)


def keeper_of(*stretches: Calls, num_envs: int = 1) -> SlowestCalls:
    keeper, before = SlowestCalls(seed=42, num_envs=num_envs), 0
    for calls in stretches:
        keeper.add(calls, before, CHECK)
        before += len(calls)
    return keeper


def test_the_slowest_are_kept_over_all_stretches_with_their_steps() -> None:
    keeper = keeper_of(calls_of(5, 900, 7), calls_of(8, 6, 1_000))
    steps, resets, warmup = keeper.ranked()
    assert [(step.rank, step.step, step.wall_ns) for step in steps[:3]] == [
        (1, 6, 1_000),
        (2, 2, 900),
        (3, 4, 8),
    ]
    assert (resets, warmup) == ((), ())
    assert (steps[0].check_step, steps[0].check, steps[0].seed) == (99, "abcd", 42)


def test_no_more_than_ten_of_a_kind_are_kept() -> None:
    keeper = keeper_of(calls_of(*range(1, 200)), calls_of(*range(200, 300)))
    steps, _, _ = keeper.ranked()
    assert [step.wall_ns for step in steps] == list(range(299, 299 - KEPT, -1))


def test_steps_with_a_reset_are_kept_apart_and_counted_apart() -> None:
    keeper = keeper_of(calls_of(*[10] * 30, *[500] * 25, resets=(*[0] * 30, *[1] * 25)))
    steps, resets, _ = keeper.ranked()
    assert {step.wall_ns for step in steps} == {10}
    assert {step.wall_ns for step in resets} == {500}
    assert [step.rank for step in resets] == list(range(KEPT + 1, 2 * KEPT + 1))
    assert keeper.ordinary.typical_ns == 10
    assert keeper.with_reset.spreads()["wall"].max_ns == 500
    assert keeper.ordinary.spreads()["wall"].max_ns == 10
    assert keeper.calls == 55


def test_percentiles_wait_for_calls_enough() -> None:
    spread = keeper_of(calls_of(*[10] * 250)).ordinary.spreads()["wall"]
    assert (spread.calls, spread.p50_ns, spread.p95_ns, spread.p99_ns) == (250, 10, 10, None)


def test_garbage_is_charged_to_the_call_it_was_collected_in() -> None:
    events = events_of(("loop/garbage collection", 110, 150), ("loop/garbage collection", 160, 165))
    keeper = keeper_of(calls_of_loop(laps_of(100, 200, 260), events, None, np.zeros(2, np.int64)))
    first, second = keeper.ranked()[0]
    assert (first.gc_ns, first.collections) == (45, 2)
    assert (second.gc_ns, second.collections) == (0, 0)
    assert (keeper.pauses.collections, keeper.pauses.total_ns, keeper.pauses.longest_ns) == (2, 45, 40)


def test_a_single_env_is_always_to_blame_and_of_many_only_the_one_that_was_reset() -> None:
    steps = steps_of((0, 5), (10, 15), ended=(0, 1), first=(-1, 3))
    (ordinary,), (reset,), _ = keeper_of(calls_of_batch(steps, events_of(), 20), num_envs=8).ranked()
    assert (ordinary.env, reset.env) == (None, 3)
    (alone,), _, _ = keeper_of(calls_of(5)).ranked()
    assert alone.env == 0


def test_adding_says_which_calls_are_kept() -> None:
    keeper = SlowestCalls(seed=1, num_envs=1)
    assert keeper.add(calls_of(5, 9, 7), 0, CHECK) == [1, 2, 0]
    assert keeper.add(calls_of(*[100] * KEPT), 3, CHECK) == list(range(KEPT))
    assert keeper.add(calls_of(50), 13, CHECK) == []


def test_the_slowest_of_the_warmup_come_last() -> None:
    keeper = keeper_of(calls_of(5))
    keeper.warm([(70, 3), (900, 8)], (10, "ef"))
    _, _, warmup = keeper.ranked()
    assert [(step.rank, step.step, step.wall_ns, step.check) for step in warmup] == [
        (2, 8, 900, "ef"),
        (3, 3, 70, "ef"),
    ]


def test_a_call_in_which_the_core_was_lost_says_how_often() -> None:
    """The stretch ends where the loop looked, right after its call."""
    off = Preemptions(end=np.array([905]), times=np.array([2]))
    calls = calls_of_loop(
        laps_of(0, 5, 905, 912), replace(events_of(), put_off=off), None, np.zeros(3, np.int64)
    )
    steps, _, _ = keeper_of(calls).ranked()
    assert [(step.step, step.put_off) for step in steps] == [(2, 2), (3, 0), (1, 0)]


def test_a_step_of_a_batch_in_which_the_core_was_lost_says_how_often() -> None:
    off = Preemptions(end=np.array([950]), times=np.array([1]))
    calls = calls_of_batch(
        steps_of((0, 40), (100, 940), (960, 990)), replace(events_of(), put_off=off), 1_000
    )
    steps, _, _ = keeper_of(calls).ranked()
    assert [(step.step, step.put_off) for step in steps] == [(2, 1), (1, 0), (3, 0)]
