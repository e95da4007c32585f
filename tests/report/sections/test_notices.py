from dataclasses import replace

from support.drawn import text
from support.records import BENCH

from hotloop.core.errors import Code, notice
from hotloop.report.section import Lines, notices


def test_a_notice_is_said_once_and_with_its_targets_where_it_does_not_hold_for_all() -> None:
    both, one = notice(Code.DIRTY), notice(Code.TOO_FEW_ROUNDS, rounds=2)
    other = replace(BENCH, target=replace(BENCH.target, name="grid/arena"), notices=(both, one))
    drawn = text(notices([replace(BENCH, notices=(both,)), other]))
    assert drawn.splitlines() == [
        f"! {both.text}; {both.remedy}",
        f"! grid/arena: {one.text}; {one.remedy}",
    ]


def test_no_notices_are_no_lines() -> None:
    assert notices([BENCH]) == (Lines(lines=()),)
    assert text(notices([BENCH])) == ""
