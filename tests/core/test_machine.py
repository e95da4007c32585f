import json
import os
from pathlib import Path

import psutil
import pytest

from hotloop.core import machine as module
from hotloop.core.machine import container_limits, fingerprint, gpu, machine

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


def make(root, files: dict[str, str]):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_nothing_limits_a_machine_without_control_groups(tmp_path):
    assert container_limits(tmp_path) == {"cpus": None, "memory_bytes": None}


def test_version_two_limits_are_read(tmp_path):
    files = {
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/cpu.max": "50000 100000\n",
        "sys/fs/cgroup/memory.max": "1073741824\n",
    }
    assert container_limits(make(tmp_path, files)) == {"cpus": 0.5, "memory_bytes": 1 << 30}


def test_the_tightest_group_on_the_way_up_counts(tmp_path):
    files = {
        "proc/self/cgroup": "0::/pod/box\n",
        "sys/fs/cgroup/cpu.max": "max 100000\n",
        "sys/fs/cgroup/pod/cpu.max": "200000 100000\n",
        "sys/fs/cgroup/pod/box/cpu.max": "400000 100000\n",
        "sys/fs/cgroup/pod/box/memory.max": "max\n",
    }
    assert container_limits(make(tmp_path, files)) == {"cpus": 2.0, "memory_bytes": None}


@pytest.mark.parametrize("path", ["/", "/docker/0123"])
def test_version_one_limits_are_read_even_where_the_path_is_the_hosts(tmp_path, path):
    files = {
        "proc/self/cgroup": f"4:memory:{path}\n2:cpu,cpuacct:{path}\n1:name=systemd:/\n0::/\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "300000\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "4096\n",
    }
    assert container_limits(make(tmp_path, files)) == {"cpus": 3.0, "memory_bytes": 4096}


def test_version_one_says_no_limit_in_numbers(tmp_path):
    files = {
        "proc/self/cgroup": "4:memory:/\n1:cpu:/\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    }
    assert container_limits(make(tmp_path, files)) == {"cpus": None, "memory_bytes": None}


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """Puts a program in the driver's place."""

    def install(script: str) -> None:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setattr(module.shutil, "which", lambda _: str(program))

    return install


def test_alike_gpus_are_counted(driver):
    driver("echo 'NVIDIA H200, 143771, 550.54'; echo 'NVIDIA H200, 143771, 550.54'")
    assert gpu() == {"name": "NVIDIA H200", "count": 2, "memory_bytes": 143771 << 20, "driver": "550.54"}


def test_a_gpu_that_does_not_tell_its_memory_is_still_named(driver):
    driver("echo 'NVIDIA GB10, [N/A], 580.1'")
    assert gpu() == {"name": "NVIDIA GB10", "count": 1, "memory_bytes": None, "driver": "580.1"}


@pytest.mark.parametrize("script", ["exit 9", "true", "echo 'failed'; exit 1"])
def test_a_driver_without_a_gpu_means_none(driver, script):
    driver(script)
    assert gpu() is None


def test_no_driver_means_none(monkeypatch):
    monkeypatch.setattr(module.shutil, "which", lambda _: None)
    assert gpu() is None
