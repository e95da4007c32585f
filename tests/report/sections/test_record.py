from dataclasses import replace

import pytest
from support.records import BENCH, PROFILE

from hotloop.core.record import Record
from hotloop.core.record.metadata import Work
from hotloop.report import html
from hotloop.report.kinds.record import LOOPS, PROGRAMS, record_sections

EMPTY = replace(BENCH, values={}, metrics={}, work=Work())
PROGRAM = replace(BENCH, work=Work(runs=3))


@pytest.mark.parametrize("kind", sorted({*LOOPS, *PROGRAMS, "gate", "of another version"}))
@pytest.mark.parametrize(
    "record", [BENCH, PROFILE, EMPTY, PROGRAM], ids=["bench", "profile", "empty", "program"]
)
def test_a_record_without_what_its_kind_is_about_is_shown_all_the_same(record: Record, kind: str) -> None:
    assert "grid/toy" in html.draw(record_sections(replace(record, kind=kind)))
