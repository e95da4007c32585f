"""A falling speed and a growing memory are told of runs that were watched long enough."""

from dataclasses import replace

from support.cases import loop
from support.records import BENCH

from hotloop.core.errors import Code
from hotloop.core.record import Record, Resources
from hotloop.judge.course import find_fall, find_rise
from hotloop.judge.diagnose import diagnose
from hotloop.judge.judge import judge

ROWS = {"collect": (10, 0.6), "learn": (10, 0.4)}

MIB = 1 << 20


def codes(record: Record) -> set[str]:
    return {each.code for each in record.notices}


def test_a_loop_whose_updates_take_longer_and_longer_says_so() -> None:
    slow = loop(ROWS, slowing=3.0)
    fall = find_fall(slow)
    assert fall is not None
    assert fall.last < fall.first / 1.5
    assert Code.FALLING in codes(slow)
    assert Code.FALLING not in codes(loop(ROWS, slowing=1.0))


def test_a_fault_comes_before_every_gain() -> None:
    rows = {"teacher": (10, 0.4), "env": (10, 0.3), "learn": (10, 0.3)}
    found = diagnose(loop(rows, slowing=2.0, memory=range(100, 300, 10)))
    assert [each.rule for each in found.candidates][:2] == ["decay", "growth"]
    assert found.candidates[2].rule == "teacher"


def test_a_loop_that_waits_for_a_core_longer_and_longer_is_not_getting_slower() -> None:
    slow = loop(ROWS, slowing=3.0)
    assert slow.looks is not None
    waited = tuple(max(ns - slow.looks.wall_ns[0], 0) for ns in slow.looks.wall_ns)
    assert find_fall(replace(slow, looks=replace(slow.looks, queued_ns=waited))) is None


def test_on_a_busy_machine_only_a_fall_that_neighbors_cannot_cause_is_told() -> None:
    slow, much_slower = (loop(ROWS, slowing=times) for times in (1.3, 3.0))
    assert find_fall(slow) is not None
    beside_others = {"load": 8.0, "usable_cores": 2}
    slow, much_slower = (
        replace(each, machine={**each.machine, **beside_others}) for each in (slow, much_slower)
    )
    assert find_fall(slow) is None
    assert find_fall(much_slower) is not None


def test_memory_that_grows_to_the_end_is_told_with_its_rate() -> None:
    rise = find_rise(loop(ROWS, memory=range(100, 200, 5)))
    assert rise is not None
    assert rise.rate.low <= 10 * MIB <= rise.rate.high
    assert "MiB/s" in rise.said


def test_memory_that_fills_up_and_stays_is_no_growth() -> None:
    assert find_rise(loop(ROWS, memory=(*range(20, 100, 10), *(100,) * 22))) is None


def test_too_few_looks_tell_no_trend_and_the_rules_list_themselves_as_skipped() -> None:
    short = loop(ROWS, memory=range(100, 200, 10))
    assert find_rise(short) is None
    gaps = {gap.rule: gap for gap in diagnose(short).gaps}
    assert {"growth", "decay"} <= {*gaps}
    assert "at least 5 s and 20 windows or rounds" in gaps["decay"].needs


def test_a_bench_says_that_its_memory_grew() -> None:
    points = tuple((at * 1_000_000_000, (100 + 5 * at) * MIB) for at in range(30))
    grown = judge(replace(BENCH, resources=Resources(rss_over_time=points)))
    assert Code.GROWING in codes(grown)
