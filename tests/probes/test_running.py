"""A process that runs already: its threads with the time they wait, and the functions that they work at."""

import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.core.record import stacks
from hotloop.core.registry import ProbeError
from hotloop.probes import samples
from hotloop.probes.samples import ThreadTime, describe_threads, read_threads

MAIN, WORK, WAIT = ("main", "/me/a.py", 3), ("work", "/me/a.py", 7), ("wait", "/me/a.py", 9)

PROGRAM = """
import threading, time
def wait(): time.sleep(600)
def work(): return sum(range(3000))
threading.Thread(target=wait, name="sleeper", daemon=True).start()
print("ready", flush=True)
while True: work()
"""


def test_a_thread_that_waits_is_idle_and_has_no_samples(tmp_path: Path) -> None:
    busy = ThreadTime(name="MainThread 1", share=0.5, seconds={(MAIN, WORK): 1.5, (MAIN,): 0.5})
    sleeper = ThreadTime(name="sleeper 2", share=0.0, seconds={(WAIT,): 0.2})
    found = describe_threads([sleeper, busy], 4.0, tmp_path)
    assert found.tables[0].rows == (("MainThread 1", 0.5, 0.5), ("sleeper 2", 0.0, 1.0))
    assert found.facts["samples"] == 2 * samples.OUTSIDE_RATE
    assert {row[0]: row[1] for row in found.tables[-1].rows} == {
        "work (me/a.py:7)": 0.75,
        "main (me/a.py:3)": 0.25,
    }
    assert {path.name for path in tmp_path.iterdir()} == set(found.files)


def test_a_process_that_only_waits_has_its_threads_and_no_functions(tmp_path: Path) -> None:
    found = describe_threads([ThreadTime(name="MainThread 1", share=0.0, seconds={})], 4.0, tmp_path)
    assert [table.rows for table in found.tables] == [(("MainThread 1", 0.0, 1.0),)]


def test_threads_are_known_by_the_number_of_the_kernel(tmp_path: Path) -> None:
    stacks.write(tmp_path / "x.json", 'Thread 12 "half"', {(MAIN,): 1.0})
    assert read_threads(tmp_path / "x.json") == {12: ("half", {(MAIN,): 1.0})}


def test_a_running_process_is_attached_to_and_lives_on(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            found = samples.attach(child.pid, tmp_path, 1)
            assert child.poll() is None
        except ProbeError as error:
            pytest.skip(f"NOT TESTED: {error}")
        finally:
            child.kill()
    threads = {row[0].partition(" ")[0]: row[2] for row in found.tables[0].rows}
    assert threads["MainThread"] < threads["sleeper"]
    assert any(row[0].startswith("work ") for row in found.tables[1].rows)
