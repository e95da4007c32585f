import ctypes
from typing import Any

from hotloop.probes import resources


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
