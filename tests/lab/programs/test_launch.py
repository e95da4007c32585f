import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.leaving import CODE, leaves

from hotloop.core.errors import InputError, SetupError, UndecidedError
from hotloop.lab.programs.launch import LAUNCHER, Launcher, Program, last_line

WASTE = "import sys; b = bytearray(60_000_000); sum(range(2_000_000)); print('out'); print('err', file=sys.stderr)"  # noqa: E501 - a program in a line


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with Launcher() as made:
        yield made


def python(code: str) -> Program:
    return Program((sys.executable, "-S", "-c", code))


def test_a_run_has_its_time_its_cpu_time_its_own_peak_and_what_it_printed(launcher: Launcher) -> None:
    large = launcher.run(python(WASTE))
    assert 0 < large.cpu_ns
    assert 60_000_000 < large.rss_peak_bytes < 120_000_000
    assert large.printed == "out\n\nerr\n"
    small = launcher.run(python("pass"))
    assert small.rss_peak_bytes < 40_000_000
    assert small.wall_ns > 0
    assert small.cpu_ns < large.cpu_ns


def test_the_work_of_children_is_the_programs(launcher: Launcher) -> None:
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {WASTE!r}])"
    assert launcher.run(python(child)).rss_peak_bytes > 60_000_000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("/nowhere/at/all",), "/nowhere/at/all: it cannot be started: No such file"),
        ((sys.executable, "-S", "-c", "raise ValueError('mine')"), "exit code 1: ValueError: mine"),
        ((sys.executable, "-S", "-c", "import os; os.kill(os.getpid(), 9)"), "ended by SIGKILL: it printed"),
        ((sys.executable, "-S", "-c", "print('why'); raise SystemExit(3)"), "ended with exit code 3: why"),
    ],
)
def test_a_program_that_fails_is_refused_with_its_own_last_line(
    launcher: Launcher, words: tuple[str, ...], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        launcher.run(Program(words))
    assert launcher.run(python("print(1)")).printed == "1\n\n"


def test_a_program_sees_the_environment_and_no_input_and_the_usual_signals(launcher: Launcher) -> None:
    code = (
        "import os, signal, sys; print(os.environ['MINE'], repr(sys.stdin.read()), "
        "signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)"
    )
    assert launcher.run(python(code), {"MINE": "yes"}).printed == "yes '' True\n\n"


def test_what_a_program_leaves_behind_ends_with_it(launcher: Launcher) -> None:
    code = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid)"
    assert is_gone(int(launcher.run(python(code)).printed))


def test_who_closes_the_launcher_or_dies_ends_the_program_too(tmp_path: Path) -> None:
    for end in ("close", "die"):
        pipe = tmp_path / end
        os.mkfifo(pipe)
        order = {"words": ["sh", "-c", f"echo $$ > {pipe}; sleep 600"], "out": os.devnull, "err": os.devnull}
        launched = subprocess.Popen(
            [sys.executable, "-I", "-S", str(LAUNCHER)], stdin=subprocess.PIPE, text=True
        )
        assert launched.stdin is not None
        launched.stdin.write(f"{json.dumps(order | {'environment': None})}\n")
        launched.stdin.flush()
        pid = int(pipe.read_text())
        if end == "close":
            launched.send_signal(signal.SIGTERM)
        else:
            launched.stdin.close()
        assert launched.wait(30) == 1
        assert is_gone(pid)
        launched.stdin.close()


def is_gone(pid: int, looks: int = 600) -> bool:
    """Whether a process has ended, though perhaps nobody has buried it yet; a signal takes a moment."""
    for _ in range(looks):
        try:
            if "(zombie)" in Path(f"/proc/{pid}/status").read_text():
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        threading.Event().wait(0.05)
    return False


def test_a_launcher_that_is_gone_is_a_fault_of_the_setup() -> None:
    launcher = Launcher()
    launcher.close()
    with pytest.raises((SetupError, ValueError)):
        launcher.run(python("pass"))


def test_a_quoted_program_is_split_as_a_shell_would() -> None:
    program = Program.parse("python -c 'print(1)' --steps 10")
    assert program.words == ("python", "-c", "print(1)", "--steps", "10")
    assert program.name == "python -c 'print(1)' --steps 10"
    with pytest.raises(InputError, match="a side cannot be read: No closing quotation"):
        Program.parse("python 'x", "a side")
    with pytest.raises(InputError, match="a program is empty"):
        Program.parse("  ")


def test_the_last_line_is_the_last_that_says_something() -> None:
    assert last_line(["", "a\n b\r\n\n", "c"]) == "b"
    assert last_line(["10%\r20%\r"]) == "20%"
    assert last_line(["", " "]) == "it printed nothing"


def test_work_that_a_program_moves_behind_its_end_is_in_its_time() -> None:
    with Launcher() as launcher:
        run = launcher.run(leaves(cpu_s=0.3, sleep_s=0))
        assert run.cpu_ns > 300_000_000
        assert run.wall_ns > 300_000_000
        assert launcher.notices() == ()


def test_what_only_sleeps_is_not_waited_for_but_named_and_ended() -> None:
    with Launcher() as launcher:
        program = leaves(cpu_s=0, sleep_s=600)
        pid = int(launcher.run(program).printed)
        (orphan,) = launcher.orphans.values()
        assert (orphan.pid, "os.setsid()" in orphan.command) == (pid, True)
        assert is_gone(pid)
        launcher.run(program)
        (said,) = launcher.notices()
        assert (said.code, said.text.count("(pid ")) == ("left-behind", 1)


def test_what_works_first_and_then_sleeps_is_waited_for_until_it_sleeps(launcher: Launcher) -> None:
    run = launcher.run(leaves(cpu_s=0.3, sleep_s=600))
    assert 300_000_000 < run.wall_ns
    assert is_gone(int(run.printed))


def test_nothing_can_be_told_of_a_program_whose_work_goes_on_for_too_long() -> None:
    with Launcher(settle_s=0.3) as launcher:
        with pytest.raises(
            UndecidedError, match=r"(?s)cannot tell: .* ended, and '.*' \(pid \d+\) still used CPU"
        ):
            launcher.run(leaves(cpu_s=600, sleep_s=0))
        assert launcher.run(python("print(1)")).printed == "1\n\n"


def test_who_closes_the_launcher_ends_what_hides_in_another_session(tmp_path: Path) -> None:
    launcher, printed = Launcher(), tmp_path / "printed"
    code = CODE.format(cpu_s=0, sleep_s=600).replace("os.wait()", "time.sleep(600)")
    launcher.start(python(code), printed, printed)
    while not printed.exists() or not printed.read_text().strip():
        assert launcher.wait(0.01) is None
    launcher.close()
    assert is_gone(int(printed.read_text().split()[0]))


def test_output_and_errors_may_go_to_one_file(tmp_path: Path) -> None:
    printed = tmp_path / "printed"
    with Launcher() as launcher:
        launcher.start(
            python("import sys; print(1, flush=True); print(2, file=sys.stderr)"), printed, printed
        )
        answer = launcher.wait(60)
    assert answer is not None
    assert (answer["status"], printed.read_text()) == (0, "1\n2\n")
