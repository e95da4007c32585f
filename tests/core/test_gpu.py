import pytest

from hotloop.core import machine as module
from hotloop.core.machine import gpu


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
