import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hotloop.core.errors import ExitCode

FULL = Path("/dev/full")

Process = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def closed_pipe() -> int:
    """The end to write into of a pipe nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.mark.parametrize("words", [["--help"], ["bench", "--help"], ["worlds"], ["worlds", "--json"]])
def test_a_reader_that_has_gone_away_is_no_error(
    process: Process, closed_pipe: int, words: list[str]
) -> None:
    done = process(*words, stdout=closed_pipe)
    assert (done.returncode, done.stderr) == (ExitCode.FINE, "")


def test_an_error_stays_one_where_nobody_reads_it(process: Process, closed_pipe: int) -> None:
    done = process("worlds", "nonsense", stdout=closed_pipe, stderr=closed_pipe)
    assert done.returncode == ExitCode.USAGE


@pytest.mark.parametrize(("words", "code"), [(["worlds"], ExitCode.FINE), (["worlds", "no"], ExitCode.USAGE)])
def test_a_process_without_streams_works(process: Process, words: list[str], code: ExitCode) -> None:
    def close() -> Any:
        os.close(1)
        os.close(2)

    assert process(*words, stdout=None, stderr=None, preexec_fn=close).returncode == code


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_a_fault(process: Process) -> None:
    with FULL.open("w") as full:
        done = process("worlds", stdout=full)
    assert done.returncode == ExitCode.FAULT
    assert "No space left" in done.stderr
