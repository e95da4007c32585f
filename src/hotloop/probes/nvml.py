"""NVML, the driver's own library, asked directly: how busy each GPU is and how much memory is in use."""

import ctypes
from collections.abc import Callable
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
Read = Callable[[], tuple[tuple[float, int], ...]]
"""Busy share and bytes in use of each GPU."""


class Utilization(ctypes.Structure):
    """Percent of the time since the driver's last look."""

    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class Memory(ctypes.Structure):
    """Bytes."""

    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


def reader(library: Any = None) -> Read:
    """A function that reads all GPUs; it reads none where there is no driver, or no GPU."""
    if library is None:
        try:
            library = ctypes.CDLL(LIBRARY)
        except OSError:
            return tuple
    count = ctypes.c_uint()
    if library.nvmlInit_v2() or library.nvmlDeviceGetCount_v2(ctypes.byref(count)):
        return tuple
    handles = [ctypes.c_void_p() for _ in range(count.value)]
    for index, handle in enumerate(handles):
        if library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle)):
            return tuple
    return lambda: tuple(figures(library, handle) for handle in handles)


def figures(library: Any, handle: ctypes.c_void_p) -> tuple[float, int]:
    """One GPU; what it does not tell is zero."""
    busy, memory = Utilization(), Memory()
    library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(busy))
    library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
    return busy.gpu / 100, int(memory.used)
