from dataclasses import replace
from pathlib import Path

import pytest
from support.records import BENCH

from hotloop.cli.results import measure, print_records
from hotloop.core.errors import ExitCode
from hotloop.core.progress import Progress
from hotloop.core.record import Record
from hotloop.core.target import Target
from hotloop.report.section import Note


def made(target: Target, progress: Progress) -> Record:
    progress(1, 1)
    return replace(BENCH, target=replace(BENCH.target, name=target.name), partial=target.name == "stop")


def test_each_record_is_kept_as_soon_as_it_is_there() -> None:
    kept: list[str] = []

    def keep(record: Record) -> Path:
        kept.append(record.target.name)
        return Path(record.target.name)

    records = measure([Target("a"), Target("b")], made, keep)
    assert kept == [record.target.name for record in records] == ["a", "b"]


def test_an_interrupted_run_is_kept_and_is_the_last() -> None:
    records = measure([Target(name) for name in ("a", "stop", "b")], made, lambda record: Path("x"))
    assert [record.target.name for record in records] == ["a", "stop"]


def test_the_gravest_exit_code_wins(capsys: pytest.CaptureFixture[str]) -> None:
    records = [replace(BENCH, exit_code=code) for code in (0, 1, 130)]
    assert print_records(records, [Note(words="view")], as_json=False, as_list=True) == ExitCode.INTERRUPTED
    assert capsys.readouterr().out == "view\n"
