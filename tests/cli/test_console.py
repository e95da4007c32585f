import sys
from collections.abc import Callable
from io import StringIO

import pytest

from hotloop.cli import console
from hotloop.cli.console import PIPE_WIDTH, bar, emit, remark, show
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
    monkeypatch.setattr(console, "PATIENCE_NS", 0)
    shown = drawn((1, 2))
    assert "grid/toy" in shown
    assert "50%" in shown


def test_the_bar_is_not_redrawn_at_every_move(
    drawn: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "PATIENCE_NS", 0)
    monkeypatch.setattr(console, "REDRAW_NS", 10**18)
    shown = drawn((1, 4), (2, 4), (3, 4))
    assert "25%" in shown
    assert "50%" not in shown
