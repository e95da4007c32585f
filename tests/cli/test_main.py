import errno
import os
import re
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hotloop.cli import app
from hotloop.cli.main import explain, hearing_endings
from hotloop.core.errors import ExitCode, InputError, SetupError
from hotloop.core.process import lifeline


@pytest.fixture
def behave(monkeypatch: pytest.MonkeyPatch, hotloop: Callable[..., Any]) -> Callable[..., Any]:
    """Run a command that does what the given function does."""

    def run(action: Callable[[], Any]) -> Any:
        def probe() -> int:
            """Do something."""
            code: int = action()
            return code

        monkeypatch.setattr(app, "commands", lambda: {"probe": probe})
        return hotloop("probe")

    return run


def raising(error: BaseException) -> Callable[[], int]:
    def action() -> int:
        raise error

    return action


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4])
def test_a_verdict_is_what_a_command_returned(behave: Callable[..., Any], code: int) -> None:
    assert behave(lambda: code).code == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("no such thing"), ExitCode.USAGE),
        (SetupError("no such thing"), ExitCode.FAULT),
        (ValueError("no such thing"), ExitCode.FAULT),
        (RuntimeError("no such thing"), ExitCode.FAULT),
        (MemoryError("no such thing"), ExitCode.FAULT),
        (OSError(errno.EPIPE, "no such thing"), ExitCode.FAULT),
        (SystemExit(1), ExitCode.FAULT),
        (SystemExit(3), ExitCode.FAULT),
        (EOFError("no such thing"), ExitCode.FAULT),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
    ],
)
def test_no_exception_ever_looks_like_a_verdict(
    behave: Callable[..., Any], error: BaseException, code: ExitCode
) -> None:
    assert behave(raising(error)).code == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("ctrl_c", [signal.default_int_handler, signal.SIG_IGN])
def test_a_signal_to_end_interrupts_also_where_ctrl_c_is_ignored(
    behave: Callable[..., Any], ctrl_c: Any, number: signal.Signals
) -> None:
    before = signal.signal(signal.SIGINT, ctrl_c)
    try:
        said = behave(lambda *_: os.kill(os.getpid(), number))
    finally:
        signal.signal(signal.SIGINT, before)
    assert said.code == ExitCode.INTERRUPTED
    assert signal.getsignal(number) is signal.SIG_DFL


@pytest.mark.parametrize("error", [InputError("wrong:\n  this"), SetupError("wrong:\n  this")])
def test_our_errors_are_one_line_without_a_traceback(behave: Callable[..., Any], error: Exception) -> None:
    said = behave(raising(error))
    assert (said.out, said.err) == ("", "hotloop: wrong: this\n")


@pytest.mark.parametrize(("file", "where"), [((), ""), (("x.pt",), " for x.pt")])
def test_a_full_disk_is_no_fault_of_ours(behave: Callable[..., Any], file: tuple[str], where: str) -> None:
    said = behave(raising(OSError(errno.ENOSPC, "No space left on device", *file)))
    assert said.code == 64
    assert said.err == f"hotloop: No space left on device{where}: make room and run again\n"


def test_a_fault_is_one_line_that_says_where_its_traceback_is(behave: Callable[..., Any]) -> None:
    said = behave(raising(ZeroDivisionError("oh")))
    found = re.fullmatch(r"hotloop: a fault: ZeroDivisionError: oh; its traceback is in (\S+) .*\n", said.err)
    assert found is not None
    assert "raise error" in Path(found[1]).read_text()


def test_the_traceback_is_shown_where_it_is_asked_for(
    behave: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOTLOOP_DEBUG", "1")
    assert "Traceback (most recent call last)" in behave(raising(ZeroDivisionError("oh"))).err


def test_a_traceback_that_cannot_be_saved_does_not_hide_the_fault(
    behave: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/no/such/folder")
    said = behave(raising(ZeroDivisionError("oh")))
    assert said.code == ExitCode.FAULT
    assert "could not be saved" in said.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["bench"], "TARGET"),
        (["bench", "grid/toy", "--nonsense"], "--nonsense"),
        (["bench", "grid/toy", "--rounds", "many"], "--rounds"),
        (["bench", "grid/toy", "--rounds", "0"], "--rounds"),
        (["bench", "grid/toy", "--rounds"], "--rounds"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_wrong_usage_is_one_line_that_says_where_help_is(
    hotloop: Callable[..., Any], words: list[str], told: str
) -> None:
    said = hotloop(*words)
    assert (said.code, said.out) == (ExitCode.USAGE, "")
    assert told in said.err
    assert said.err.count("\n") == 1
    assert "--help" in said.err


def test_no_command_shows_the_help_and_is_wrong_usage(hotloop: Callable[..., Any]) -> None:
    said = hotloop()
    assert (said.code, said.out) == (ExitCode.USAGE, "")
    assert "Usage: hotloop" in said.err


def test_a_forked_worker_ends_by_a_sigterm_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    begun, begin = os.pipe()
    with hearing_endings():
        worker = os.fork()
        if not worker:
            os.write(begin, b".")
            time.sleep(30)
            os._exit(0)
        os.read(begun, 1)  # one that has not begun yet is rid of the handler later than it is hit
        os.kill(worker, signal.SIGTERM)
        _, status = os.waitpid(worker, 0)
    assert os.WTERMSIG(status) == signal.SIGTERM
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("error", "said", "shown"),
    [
        (KeyboardInterrupt(), "interrupted", ""),
        (InputError("no such thing"), "no such thing", "hotloop: no such thing\n"),
    ],
)
def test_who_watches_tells_an_interruption(
    error: BaseException,
    said: str,
    shown: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Line:
        def say(self, *, failed: str) -> None:
            assert failed == said

    monkeypatch.setattr(lifeline, "line", Line())
    explain(error)
    assert capsys.readouterr().err == shown
