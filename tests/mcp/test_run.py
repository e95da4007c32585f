import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from hotloop.core.errors import ExitCode
from hotloop.core.process.supervisor import ExitReport
from hotloop.mcp.server import OutputBuffer, result_of, run


def unkept(*_: object) -> Path:
    raise AssertionError("there was no record")


def test_progress_never_goes_back() -> None:
    output, seen = OutputBuffer(), []
    for label, share, total in (("a", 0, 4), ("a", 2, 4), ("a", 1, 4), ("b", 0, 2), ("b", 9, 2), ("c", 0, 0)):
        output.moved(label, share, total)
        seen.append(output.far)
    assert seen == [(0.0, 1, "a"), (0.5, 1, "a"), (0.5, 1, "a"), (1.0, 2, "b"), (2.0, 2, "b"), (2.0, 3, "c")]


@pytest.mark.usefixtures("own_loop")
def test_a_command_is_heard_to_its_end(tmp_path: Path) -> None:
    async def moved(*_: Any) -> None: ...

    told = asyncio.run(run(["guide"], moved, tmp_path, unkept))
    assert (told.code, told.err) == (ExitCode.FINE, "")
    assert told.out.startswith("# Making a simulation faster")


def test_what_was_saved_and_what_was_wrong_are_read_from_what_it_said() -> None:
    output = OutputBuffer(err="saved artifacts/a.json\n! busy\nhotloop: no such thing\n")
    told = result_of(output, ExitReport(code=64), unkept)
    assert (told.saved, told.last_words) == (("artifacts/a.json",), "no such thing")


def test_a_process_that_was_ended_says_by_what() -> None:
    assert result_of(OutputBuffer(), ExitReport(why="it stood still"), unkept).last_words == "it stood still"
    assert result_of(OutputBuffer(), ExitReport(interrupted=True), unkept).code == ExitCode.INTERRUPTED


def test_the_record_of_a_process_that_was_ended_is_saved_with_the_reason() -> None:
    kept: list[object] = []

    def keep(*given: object) -> Path:
        kept.append(given)
        return Path("a.json")

    for report in (ExitReport(why="it stood still", record="{}"), ExitReport(interrupted=True, record="{}")):
        assert result_of(OutputBuffer(), report, keep).rest == Path("a.json")
    assert kept == [("{}", ExitCode.USAGE, "it stood still"), ("{}", ExitCode.INTERRUPTED, None)]
