import ctypes
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.scenes import quick, scene

from hotloop.probes import resources
from hotloop.probes.resources import ResourceSample, Sampler, describe, look, over_time, reader, slope

START = ResourceSample(
    at_ns=0,
    cpu_ns=100,
    rss_bytes=1_000,
    read_bytes=5,
    written_bytes=7,
    threads=2,
    processes=1,
    cores=(0.0, 0.0),
    gpus=(),
    ready_ns=50,
)
MIDDLE = replace(START, at_ns=10**9, cpu_ns=10**9 + 100, rss_bytes=5_000, threads=4, cores=(0.5, 1.0))
END = replace(
    MIDDLE,
    at_ns=2 * 10**9,
    rss_bytes=3_000,
    read_bytes=25,
    written_bytes=8,
    cores=(0.7, 0.0),
    ready_ns=50 + 5 * 10**8,
)


def test_samples_come_to_peaks_shares_and_what_was_moved() -> None:
    found = describe([START, MIDDLE, END], env_steps=30)
    assert found.facts == {
        "rss_peak_bytes": 5_000,
        "rss_mean_bytes": 3_000,
        "rss_over_time": [[0, 1_000], [10**9, 5_000], [2 * 10**9, 3_000]],
        "rss_slope": 1_000.0,
        "cpu_share": 0.5,
        "ready_share": 0.25,
        "gpu": None,
        "read_bytes": 20,
        "written_bytes": 1,
        "threads": 4,
        "processes": 1,
        "samples": 3,
        "env_steps": 30,
        "wall_ns": 2 * 10**9,
    }
    assert found.tables[0].rows == ((0, pytest.approx(0.6), 0.7), (1, 0.5, 1.0))


def test_the_time_without_a_core_is_not_known_where_the_kernel_does_not_say() -> None:
    samples = [replace(START, ready_ns=None), END]
    assert describe(samples, 1).facts["ready_share"] is None


def test_gpus_are_told_one_by_one() -> None:
    samples = [replace(START, gpus=((0.2, 10), (0.0, 5))), replace(END, gpus=((0.6, 30), (0.0, 4)))]
    assert describe(samples, 1).facts["gpu"] == {
        "devices": [
            {"busy_share": pytest.approx(0.4), "peak_bytes": 30},
            {"busy_share": 0.0, "peak_bytes": 5},
        ]
    }


def test_a_slope_is_that_of_the_line_through_the_points() -> None:
    assert slope([(0.0, 5.0), (1.0, 7.0), (2.0, 9.0)]) == pytest.approx(2.0)
    assert slope([(1.0, 5.0)]) is None


def test_memory_over_time_keeps_as_many_points_as_a_curve_needs() -> None:
    many = [replace(START, at_ns=number, rss_bytes=number) for number in range(1_000)]
    kept = over_time(many)
    assert len(kept) <= resources.MOST_POINTS
    assert kept[0] == [0, 0]
    assert kept[-1][0] > 900


def test_the_side_thread_takes_samples_and_ends() -> None:
    seen = threading.Event()

    def read() -> ResourceSample:
        if threading.current_thread().name == "hotloop-resources":
            seen.set()
        return START

    with Sampler(read) as sampler:
        assert seen.wait(10)
    assert len(sampler.samples) >= 3
    assert "hotloop-resources" not in [thread.name for thread in threading.enumerate()]


def test_a_play_that_is_over_at_once_is_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "SHORTEST_NS", 100_000_000)
    found = look(scene(tmp_path, quick, calls=10))
    assert found.facts["env_steps"] > 10
    assert found.facts["env_steps"] % 10 == 0
    assert found.facts["wall_ns"] >= 100_000_000
    assert found.facts["rss_peak_bytes"] > 1 << 20


def test_children_are_counted_with_their_parent() -> None:
    before = reader()()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        after = reader()()
        child.communicate(b"\n")
    assert after.processes == before.processes + 1
    assert len(after.cores) >= 1


class Driver:
    """What the driver's library would answer for two GPUs."""

    def __init__(self, failing: str = "") -> None:
        self.failing = failing

    def nvmlInit_v2(self) -> int:  # noqa: N802 - the driver's names
        return int(self.failing == "init")

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:  # noqa: N802
        count._obj.value = 2
        return int(self.failing == "count")

    def nvmlDeviceGetHandleByIndex_v2(self, index: ctypes.c_uint, handle: Any) -> int:  # noqa: N802
        handle._obj.value = index.value + 1
        return int(self.failing == "handle")

    def nvmlDeviceGetUtilizationRates(self, handle: ctypes.c_void_p, busy: Any) -> int:  # noqa: N802
        busy._obj.gpu = 30 * (handle.value or 0)
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle: ctypes.c_void_p, memory: Any) -> int:  # noqa: N802
        memory._obj.used = 1 << (30 + (handle.value or 0))
        return 0


def test_each_gpu_says_how_busy_it_is_and_how_much_memory_is_in_use() -> None:
    assert resources.gpu_reader(Driver())() == ((0.3, 1 << 31), (0.6, 1 << 32))


def test_a_driver_that_does_not_answer_is_no_gpu() -> None:
    for failing in ("init", "count", "handle"):
        assert resources.gpu_reader(Driver(failing))() == ()


def test_no_driver_is_no_gpu(monkeypatch: Any) -> None:
    monkeypatch.setattr(resources, "LIBRARY", "no-such-library.so")
    assert resources.gpu_reader()() == ()
