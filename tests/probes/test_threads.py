import threading
from pathlib import Path

import numpy as np
import pytest
from support.scenes import scene, slow, turn

import hotloop
from hotloop.probes.threads import by_function, cpu_ns, look, read, thread_names

yappi = pytest.importorskip("yappi")


def beside() -> None:
    """A step whose work is done by another thread."""
    worker = threading.Thread(target=slow, name="mine")
    worker.start()
    worker.join()


def test_threads_are_named_and_their_cpu_time_is_a_share_of_the_wall(tmp_path: Path) -> None:
    found = look(scene(tmp_path, turn, calls=200))
    threads, functions = found.tables
    assert threads.rows[0][0] == "MainThread"
    assert threads.rows[0][2] == pytest.approx(threads.rows[0][1] / found.facts["wall_ns"])
    assert found.facts["threads"] == len(threads.rows)
    assert functions.rows[0][1].startswith("slow (support/scenes.py:")


def test_the_work_of_another_thread_is_told_apart(tmp_path: Path) -> None:
    rows = by_function(scene(tmp_path, beside, calls=3))
    of_slow = {row[0] for row in rows if row[1].startswith("slow (")}
    assert len(of_slow) == 3
    assert not any(name.startswith("MainThread") for name in of_slow)


def test_yappi_is_off_and_empty_afterwards_even_if_the_play_breaks(tmp_path: Path) -> None:
    def breaks() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError):
        by_function(scene(tmp_path, breaks))
    assert not yappi.is_running()
    yappi.clear_stats()


def test_the_cpu_time_of_a_thread_grows_as_it_works() -> None:
    mine = threading.get_native_id()
    before = cpu_ns()[mine]
    while cpu_ns()[mine] == before:  # the kernel brings it up to date at its next tick
        slow()
    assert cpu_ns()[mine] > before


def test_native_threads_are_there_too() -> None:
    batch = hotloop.make("grid/toy", num_envs=64, agents=3, threads=2)
    if batch.spec.impl != "native":
        pytest.skip("the native module is not built")
    batch.reset()
    batch.step(np.zeros((64, 3), np.int32))
    there, names = cpu_ns(), thread_names()
    batch.close()
    assert threading.get_native_id() in there
    assert any(names[thread].startswith("native ") for thread in there)


def test_a_thread_that_has_ended_says_nothing(tmp_path: Path) -> None:
    assert read(tmp_path / "gone") == ""


def test_a_thread_that_python_does_not_know_has_the_kernels_name() -> None:
    names = thread_names()
    assert names[threading.main_thread().native_id or 0] == "MainThread"
