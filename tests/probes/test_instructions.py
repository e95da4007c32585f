import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hotloop.core.errors import ExitCode, InputError, MissingError, SetupError
from hotloop.probes import instructions
from hotloop.probes.instructions import Counter, instructions_of, require, under_valgrind

needs_valgrind = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")

LOG = """==123== Callgrind, a call-graph generating cache profiler
==123== For interactive control, run 'callgrind_control -h'.
==123==
==123== Events    : Ir
==123== Collected : 872439203
==123==
==123== I   refs:      872,439,203
"""

PROGRAM = """
from hotloop.probes.instructions import StretchServer
answers = StretchServer()
print("not an answer")
answers.say(name="counter")

def stretch(asked):
    print("not an answer either")
    for _ in range(asked["turns"]):
        pass
    if asked["turns"] == 13:
        raise ValueError("thirteen")

answers.serve(stretch)
"""


def test_the_count_is_read_from_the_log() -> None:
    assert instructions_of(LOG) == 872_439_203


@pytest.mark.parametrize("log", ["", "valgrind: failed to start\n", LOG.replace("Collected", "Connected")])
def test_a_log_without_a_count_is_a_fault(log: str) -> None:
    with pytest.raises(SetupError, match="valgrind counted nothing; it said: ") as caught:
        instructions_of(log)
    assert caught.value.exit_code == ExitCode.FAULT


def test_without_valgrind_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    for call in (require, lambda: Counter(["-c", "pass"])):
        with pytest.raises(MissingError, match="apt install valgrind") as caught:
            call()
        assert caught.value.exit_code == ExitCode.USAGE


def test_addresses_are_fixed_only_where_the_kernel_allows_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    allowed = 0
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(
        instructions.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, allowed)
    )
    assert under_valgrind(["x"], tmp_path)[:3] == ["/bin/setarch", "-R", "/bin/valgrind"]
    allowed = 1
    assert under_valgrind(["x"], tmp_path)[0] == "/bin/valgrind"


@pytest.mark.slow
@needs_valgrind
def test_stretches_differ_by_their_own_work_and_nothing_is_left_behind() -> None:
    with Counter(["-c", PROGRAM]) as counter:
        assert counter.facts == {"name": "counter"}
        few, again, many = (counter.count({"turns": turns}) for turns in (1000, 1000, 3000))
        assert abs(again - few) < 10_000
        assert 2000 * 5 < many - again < 2000 * 500
        with pytest.raises(InputError, match="ended with status"):
            counter.count({"turns": 13})
        process, folder = counter.process, counter._logs
    assert process.returncode is not None
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


@pytest.mark.slow
@needs_valgrind
def test_a_program_that_ends_leaves_its_last_words() -> None:
    with pytest.raises(InputError, match="its last words: oh no"):
        Counter(["-S", "-c", "import sys; sys.exit('oh no')"], {"PATH": os.environ["PATH"]})
