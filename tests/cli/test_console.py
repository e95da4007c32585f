import os
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from hotloop.cli import main
from hotloop.cli.main import PIPE_WIDTH, bar, emit, encodable, remark, show
from hotloop.core.errors import ExitCode
from hotloop.core.progress import silent


def test_results_go_to_stdout_and_remarks_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    show("result")
    remark("remark")
    assert capsys.readouterr() == ("result\n", "remark\n")


def test_brackets_are_not_markup(capsys: pytest.CaptureFixture[str]) -> None:
    show("hotloop[train] [7.80 M, 8.20 M] :smile:")
    assert capsys.readouterr().out == "hotloop[train] [7.80 M, 8.20 M] :smile:\n"


def test_a_pipe_gets_plain_text_of_a_fixed_width(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.text import Text

    show(Text("x" * (PIPE_WIDTH + 1), "bold red"))
    assert capsys.readouterr().out == "x" * PIPE_WIDTH + "\nx\n"


def test_text_is_flushed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []

    class Stream(StringIO):
        def flush(self) -> None:
            flushed.append(self.getvalue())

    monkeypatch.setattr(sys, "stdout", Stream())
    emit("{}\n")
    assert flushed == ["{}\n"]


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Move a bar on a terminal and return what was drawn there."""
    monkeypatch.setenv("TERM", "xterm")

    def draw(*moves: tuple[int, int]) -> str:
        terminal = Terminal()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", terminal)
            with bar("grid/toy") as move:
                for done, total in moves:
                    move(done, total)
        return terminal.getvalue()

    return draw


def test_without_a_terminal_there_is_no_bar() -> None:
    with bar("grid/toy") as move:
        assert move is silent


def test_a_short_wait_has_no_bar(drawn: Callable[..., str]) -> None:
    assert "grid/toy" not in drawn((1, 2))


def test_a_long_wait_has_a_bar_with_its_share(
    drawn: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "PATIENCE_NS", 0)
    shown = drawn((1, 2))
    assert "grid/toy" in shown
    assert "50%" in shown


def test_the_bar_is_not_redrawn_at_every_move(
    drawn: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "PATIENCE_NS", 0)
    monkeypatch.setattr(main, "REDRAW_NS", 10**18)
    shown = drawn((1, 4), (2, 4), (3, 4))
    assert "25%" in shown
    assert "50%" not in shown


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
def test_a_full_disk_is_one_line(process: Process) -> None:
    with FULL.open("w") as full:
        done = process("worlds", stdout=full)
    assert done.returncode == ExitCode.USAGE
    assert "No space left" in done.stderr


ENV = """
class Env:
    num_actions = 2
    def reset(self, seed=None): return 0, {}
    def step(self, action): return 0, 0.0, False, False, {}
"""

SCREENS = {
    "bench": ["bench", "env.py:Env", "--rounds", "5", "--iterations", "100", "--warmup", "100"],
    "profile": ["profile", "grid/toy", "--steps", "500"],
    "scale": ["scale", "grid/toy", "agents=2,4", "--repeats", "1", "--steps", "100"],
}

ASCII = {"PYTHONIOENCODING": "ascii"}

LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize(("screen", "how"), [*((each, ASCII) for each in SCREENS), ("bench", LOCALE)])
def test_a_screen_is_shown_in_ascii_where_nothing_else_can_be(
    process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, screen: str, how: dict[str, str]
) -> None:
    (tmp_path / "env.py").write_text(ENV)
    for name, value in how.items():
        monkeypatch.setenv(name, value)
    done = process(*SCREENS[screen])
    assert done.returncode not in (ExitCode.FAULT, ExitCode.USAGE), done.stderr
    assert done.stdout.strip()
    assert (done.stdout + done.stderr).isascii()


def test_what_ascii_lacks_is_written_with_the_nearest_signs() -> None:
    assert encodable("3 µs → 2² ≥ 1… █", "ascii") == "3 us -> 22 >= 1... #"
    assert encodable("µ中", "ascii") == "u?"
    assert encodable("µ中", "utf-8") == "µ中"
