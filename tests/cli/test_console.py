import sys
from io import StringIO

import pytest

from hotloop.cli.console import PIPE_WIDTH, emit, remark, show


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
