import json
import os
from pathlib import Path

import psutil
import pytest

from hotloop.core import machine as module
from hotloop.core.machine import fingerprint, machine

CPUINFO = """processor : 0
model name : Test CPU @ 3GHz
flags : fpu avx2 avx512f sse4_2 bmi2

processor : 1
model name : Another
"""
STAT = "cpu  50 0 10 900 15 0 0 25 0 0\ncpu0 1 2 3\n"


@pytest.fixture
def root(tmp_path) -> Path:
    """A small file system to read a machine from."""
    texts = {
        "proc/cpuinfo": CPUINFO,
        "proc/stat": STAT,
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/cpu.max": "150000 100000\n",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
        "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_machine_is_read_from_the_kernel(root):
    seen = machine(root)
    assert seen["cpu"] == "Test CPU @ 3GHz"
    assert seen["isa"] == ["sse4_2", "avx2", "bmi2", "avx512f"]
    assert seen["governor"] == "powersave"
    assert seen["clocksource"] == "tsc"
    assert seen["steal_share"] == 0.025
    assert seen["limits"] == {"cpus": 1.5, "memory_bytes": None}


def test_a_machine_without_proc_is_still_described(tmp_path):
    seen = machine(tmp_path)
    assert seen["cpu"]
    assert seen["cores"] == os.cpu_count()
    assert seen["isa"] == []
    assert seen["steal_share"] is seen["governor"] is seen["clocksource"] is None


def test_arm_calls_its_instruction_sets_features(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("processor : 0\nFeatures : fp asimd sve\n")
    assert machine(tmp_path)["isa"] == ["asimd", "sve"]


def test_this_machine_goes_into_json():
    seen = machine()
    assert json.loads(json.dumps(seen)) == seen


def test_the_fingerprint_outlasts_load_and_time(root, monkeypatch):
    before = machine(root)
    monkeypatch.setattr(os, "getloadavg", lambda: (99.0, 99.0, 99.0))
    (root / "proc/stat").write_text("cpu  9 9 9 9 9 9 9 9 0 0\n")
    (root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").write_text("performance")
    after = machine(root)
    assert after["load"] != before["load"]
    assert after["fingerprint"] == before["fingerprint"]


def test_the_fingerprint_outlasts_a_little_memory_kept_by_a_kernel(root, monkeypatch):
    class Memory:
        total = psutil.virtual_memory().total

    monkeypatch.setattr(psutil, "virtual_memory", Memory)
    Memory.total = 16 * 2**30 - 200_000_000
    before = machine(root)["fingerprint"]
    Memory.total -= 50_000_000
    assert machine(root)["fingerprint"] == before
    Memory.total *= 2
    assert machine(root)["fingerprint"] != before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("proc/cpuinfo", CPUINFO.replace("Test CPU", "Newer CPU")),
        ("proc/cpuinfo", CPUINFO.replace("avx512f", "")),
        ("sys/fs/cgroup/cpu.max", "200000 100000\n"),
    ],
)
def test_another_machine_has_another_fingerprint(root, name, text):
    before = machine(root)["fingerprint"]
    (root / name).write_text(text)
    assert machine(root)["fingerprint"] != before


def test_a_gpu_is_part_of_the_fingerprint_and_its_driver_is_not(root):
    hardware = module.describe_hardware(root)
    board = {"name": "H200", "count": 1, "memory_bytes": 1, "driver": "550"}
    with_gpu = fingerprint(hardware | {"gpu": board})
    assert with_gpu != fingerprint(hardware | {"gpu": None})
    assert with_gpu == fingerprint(hardware | {"gpu": board | {"driver": "560"}})
