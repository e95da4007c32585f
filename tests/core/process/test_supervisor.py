"""The supervisor over processes that are only a few lines of Python."""

import os
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hotloop.core.process import guard, supervisor
from hotloop.core.process.lifeline import Activity, where
from hotloop.core.process.supervisor import (
    ExitReport,
    StandstillLimits,
    Supervisor,
    Watchdog,
    ends,
    frames,
    has_step,
)

PREAMBLE = """
import json, mmap, os, signal, subprocess, sys, time
_, messages, beats = map(int, os.environ["HOTLOOP_LIFELINE"].split(":"))
pulse = memoryview(mmap.mmap(beats, mmap.PAGESIZE)).cast("Q")
def say(**message): os.write(messages, json.dumps(message).encode() + b"\\n")
"""


class Listener:
    def __init__(self) -> None:
        self.heard: list[tuple[str, ...]] = []

    def said(self, stream: str, text: str) -> None:
        self.heard.append((stream, text))

    def printed(self, text: str) -> None:
        self.heard.append(("printed", text))

    def moved(self, label: str, done: int, total: int) -> None:
        self.heard.append((label, f"{done}/{total}"))


def watch(code: str, step_s: float = 60.0) -> tuple[ExitReport, Listener]:
    listener = Listener()
    words = ["-S", "-E", "-c", PREAMBLE + textwrap.dedent(code)]
    return Supervisor("env.py:make", words, StandstillLimits(step_s=step_s), listener).run(), listener


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_what_a_process_says_is_passed_on_and_its_word_is_its_code() -> None:
    ended, listener = watch(
        """
        say(progress=["a", 1, 2]); say(said="result", on="out")
        say(record="{}"); say(settled=True); say(end=3)
        """
    )
    assert listener.heard == [("a", "1/2"), ("out", "result")]
    assert (ended.code, ended.why, ended.record) == (3, None, None)


def test_a_status_without_a_word_is_no_code() -> None:
    ended, _ = watch("pulse[0], pulse[1] = 11, 4; say(record='{}'); os._exit(2)")
    assert (ended.code, ended.record) == (None, "{}")
    assert ended.why == "env.py:make ended its own process in step 12, with exit code 2"


def test_a_signal_is_named() -> None:
    ended, _ = watch("pulse[1] = 3; os.kill(os.getpid(), signal.SIGSEGV)")
    assert ended.why == "env.py:make was ended by SIGSEGV in reset"


def test_what_it_prints_is_kept_apart() -> None:
    _, listener = watch("os.write(1, b'one '); os.write(2, b'two'); say(end=0)")
    assert "".join(text for what, text in listener.heard if what == "printed") == "one two"


def test_a_process_that_stands_still_is_ended() -> None:
    ended, _ = watch("pulse[0], pulse[1] = 5, 4; time.sleep(600)", step_s=0.3)
    assert ended.why is not None
    assert "stood still for 0.3 s in step 6" in ended.why
    assert ended.hung


def test_a_process_that_never_begins_is_ended_too() -> None:
    ended, _ = watch("time.sleep(600)", step_s=0.05)
    assert ended.hung
    assert (ended.why or "").startswith("env.py:make stood still for 0.5 s: give --step-timeout")


def test_whatever_it_started_ends_with_it_wherever_it_hides() -> None:
    _, listener = watch(
        """
        hidden = "import os, time; os.fork() and os._exit(0); os.setsid(); "
        hidden += "print(os.getpid(), flush=True); time.sleep(600)"
        child = subprocess.Popen(["sleep", "600"])
        print(child.pid, flush=True)
        daemon = subprocess.Popen([sys.executable, "-S", "-c", hidden], stdout=subprocess.PIPE)
        print(int(daemon.stdout.readline()), flush=True)
        os._exit(0)
        """
    )
    pids = [int(pid) for what, text in listener.heard if what == "printed" for pid in text.split()]
    assert len(pids) == 2
    assert not any(map(is_alive, pids))


def test_a_process_whose_supervisor_was_killed_ends() -> None:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:  # a supervisor that is killed while its process runs
        os.close(read)
        os.dup2(write, 2)
        loud = Listener()
        loud.printed = lambda text: os.write(write, text.encode()) and None  # type: ignore[method-assign]
        words = ["-S", "-E", "-c", PREAMBLE + "print(os.getpid(), flush=True); time.sleep(600)"]
        Supervisor("env.py:make", words, StandstillLimits(step_s=60), loud).run()
        os._exit(0)
    os.close(write)
    ending = select.poll()
    ending.register(os.pidfd_open(int(os.read(read, 100))), select.POLLIN)
    os.close(read)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert ending.poll(60_000)


def test_a_guard_whom_nobody_hears_ends_what_is_left_all_the_same() -> None:
    said, told = os.pipe()
    heard, reply = os.pipe()
    os.close(heard)
    hidden = "import os, time; os.setsid(); print(os.getpid(), flush=True); time.sleep(600)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {hidden!r}])"
    guarding = subprocess.Popen(
        [sys.executable, "-I", "-S", guard.__file__, str(reply), sys.executable, "-S", "-c", code],
        stdin=subprocess.PIPE,
        stdout=told,
        stderr=subprocess.DEVNULL,
        pass_fds=(reply,),
    )
    assert select.select([said], [], [], 30)[0]
    ending = select.poll()
    ending.register(os.pidfd_open(int(os.read(said, 100))), select.POLLIN)
    assert guarding.stdin is not None
    guarding.stdin.close()
    assert guarding.wait(60) == 0
    assert ending.poll(10_000)
    for end in (said, told, reply):
        os.close(end)


def test_what_comes_first_may_take_ten_times_as_long() -> None:
    limits = StandstillLimits(step_s=60)
    assert [limits.of(each, 0) for each in (Activity.MAKE, Activity.RESET, Activity.STEP)] == [600, 600, 600]
    assert limits.of(Activity.STEP, 1) == 60
    assert limits.of(Activity.CLOSE, 0) == 60
    assert limits.of(Activity.OURS, 9) is None


def test_progress_is_what_tells_a_slow_one_from_a_hung_one(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0]
    monkeypatch.setattr("hotloop.core.process.supervisor.now_ns", lambda: clock[0])
    dog = Watchdog(StandstillLimits(step_s=1))
    for step in range(1, 5):
        clock[0] += 900_000_000
        assert dog.exceeded_s(Activity.STEP, step) is None
    clock[0] += 1_100_000_000
    assert dog.exceeded_s(Activity.STEP, 4) == 1
    dog.note()
    assert dog.exceeded_s(Activity.STEP, 4) is None


def test_a_stack_becomes_a_few_words() -> None:
    stack = ["Fatal Python error: Aborted", "Thread 1:", '  File "/a/env.py", line 3 in step', "Thread 2:"]
    assert frames(stack) == " (env.py:3 in step)"
    assert frames([]) == ""
    assert where(Activity.OURS, 3) == ""


def test_the_guard_needs_nothing_that_takes_long_to_load() -> None:
    text = Path(guard.__file__).read_text()
    imported = {line.split()[1] for line in text.splitlines() if line.startswith(("import", "from"))}
    assert imported <= {"os", "select", "signal", "sys"} <= set(sys.stdlib_module_names)


def test_the_children_of_a_process_are_known_even_where_the_kernel_keeps_no_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with subprocess.Popen(["sleep", "600"]) as child:
        listed = guard.children_of(os.getpid())
        monkeypatch.setattr("builtins.open", missing(open, "children"))
        assert child.pid in listed
        assert set(guard.children_of(os.getpid())) == set(listed)
        child.kill()


def missing(opened: Callable[..., Any], name: str) -> Callable[..., Any]:
    """What opens files, except for those of a name, of which there are none."""

    def look(path: Any, *how: Any, **more: Any) -> Any:
        if str(path).endswith(name):
            raise FileNotFoundError(path)
        return opened(path, *how, **more)

    return look


def test_whether_a_child_ends_in_time_is_seen_and_leaves_it_to_be_waited_for() -> None:
    with subprocess.Popen(["sleep", "600"]) as child:
        assert not ends(child.pid, 0.01)
        child.kill()
        assert ends(child.pid, 60)
        assert child.wait() == -signal.SIGKILL


def test_a_stack_shows_whether_a_step_of_user_code_is_under_way() -> None:
    folder = Path(supervisor.STEPPED)
    step = [f'  File "{folder}/kinds/single.py", line 55 in play', '  File "/a/loop.py", line 3 in round']
    user = '  File "/a/env.py", line 3 in step'
    reset = f'  File "{folder}/kinds/single.py", line 38 in reset'
    assert has_step(["Current thread 0x1 (most recent call first):", user, *step])
    assert not has_step(["Current thread 0x1 (most recent call first):", user, reset, *step])
    assert not has_step(["Thread 0x1 (most recent call first):", user, *step])
    assert not has_step(["Current thread 0x1 (most recent call first):", user])


def test_a_look_is_due_once_per_limit_while_nothing_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0]
    monkeypatch.setattr("hotloop.core.process.supervisor.now_ns", lambda: clock[0])
    dog = Watchdog(StandstillLimits(step_s=1))
    dues = []
    for tenths in (0, 9, 11, 15, 19, 21, 25):
        clock[0] = tenths * 100_000_000
        dues.append(dog.is_look_due(Activity.OURS, 7))
    assert dues == [False, False, True, False, False, True, False]
    clock[0] += 1_500_000_000
    assert not dog.is_look_due(Activity.RESET, 7), "something moved"
    clock[0] += 1_500_000_000
    assert not dog.is_look_due(Activity.RESET, 0), "nothing was stepped yet"
