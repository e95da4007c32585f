import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.core.process import worker as workers
from hotloop.core.process.worker import EndedError, Worker

ECHO = "import sys\nfor line in sys.stdin:\n    print(line, end='', flush=True)"


def started(program: str) -> Worker:
    return Worker("it", [sys.executable, "-S", "-c", program], os.environ)


def test_a_worker_answers_what_it_is_told_and_ends_with_its_pipes() -> None:
    worker = started(ECHO)
    for number in range(3):
        worker.tell({"number": number})
        assert worker.answer() == {"number": number}
    worker.close()
    assert worker.process.returncode == 0


@pytest.mark.parametrize(
    ("last", "how"),
    [("sys.exit(3)", "ended with exit code 3"), ("os.kill(os.getpid(), 9)", "was ended by SIGKILL")],
)
def test_one_that_ends_leaves_its_last_words(last: str, how: str) -> None:
    worker = started(f"import os, sys\nprint('good\\nbye', file=sys.stderr, flush=True)\n{last}")
    with pytest.raises(EndedError) as caught:
        worker.answer()
    assert str(caught.value) == f"it: the program {how}; it said: good bye"
    with pytest.raises(EndedError):
        worker.tell({"again": True})
    worker.close()


def test_one_that_does_not_end_by_itself_is_killed_with_all_it_began(tmp_path: Path) -> None:
    held = tmp_path / "held"  # open for writing as long as the child lives
    os.mkfifo(held)
    child = f"import time; held = open({str(held)!r}, 'w'); time.sleep(600)"
    worker = started(
        f"import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-S', '-c', {child!r}])\n"
        "time.sleep(600)"
    )
    with held.open() as reading:
        worker.close(patience_s=0)
        assert reading.read() == ""
    assert worker.process.returncode == -signal.SIGKILL


def test_one_that_stands_still_is_ended_and_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "ANSWER_S", 1.0)
    worker = started(
        "import faulthandler, signal, sys, time\nfaulthandler.register(signal.SIGRTMAX - 2)\n"
        "print('well', file=sys.stderr, flush=True)\ntime.sleep(600)"
    )
    with pytest.raises(EndedError) as caught:
        worker.answer()
    where = "(<string>:4 in <module>)"
    assert str(caught.value) == f"it: the program stood still for 1 s {where} and was ended; it said: well"
    assert worker.process.returncode == -signal.SIGKILL
    worker.close()


def test_one_whose_owner_is_killed_does_not_live_on(tmp_path: Path) -> None:
    held = tmp_path / "held"  # open for writing as long as the worker lives
    os.mkfifo(held)
    hangs = f"import time; held = open({str(held)!r}, 'w'); time.sleep(600)"
    owner = (
        "import os, sys, time\nfrom hotloop.core.process.worker import Worker\n"
        f"worker = Worker('it', [sys.executable, '-S', '-c', {hangs!r}], os.environ)\ntime.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", owner]) as process, held.open() as reading:
        process.kill()
        assert reading.read() == ""
