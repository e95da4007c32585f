"""What a process holds: memory, open files, threads; read between measurements, in microseconds."""

import ctypes
import gc
import os
import resource
import sys
import threading
from collections.abc import Callable
from math import inf
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")

STATM = Path("/proc/self/statm")

FILES = Path("/proc/self/fd")

TASKS = Path("/proc/self/task")


class Mallinfo(ctypes.Structure):
    """What glibc's mallinfo2 gives."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


def library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def settle() -> None:
    """Collect garbage, and give free memory back to the system, where the C library can."""
    gc.collect()
    trim = getattr(library(), "malloc_trim", None)
    if trim is not None:
        trim(0)


def resident_bytes() -> int:
    """The memory of this process that is in RAM."""
    if STATM.exists():
        return int(STATM.read_text().split()[1]) * PAGE
    import psutil

    return int(psutil.Process().memory_info().rss)


def heap_reader() -> Callable[[], int] | None:
    """A function that says what malloc has handed out, Python's own arenas among it; None without glibc."""
    found = getattr(library(), "mallinfo2", None)
    if found is None:
        return None
    found.restype = Mallinfo

    def read() -> int:
        told = found()
        return int(told.uordblks) + int(told.hblkhd)

    return read


def python_blocks() -> int:
    """Blocks that Python objects take."""
    return sys.getallocatedblocks()


def most_files() -> float:
    """Files that this process may have open at once."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return inf if limit == resource.RLIM_INFINITY else limit


def open_files() -> int:
    """Files, sockets and pipes that are open; but for the one that counts them."""
    if FILES.exists():
        return sum(1 for _ in FILES.iterdir()) - 1
    import psutil

    return int(psutil.Process().num_fds())


def running_threads() -> int:
    """Threads of this process, of Python and of native code."""
    return sum(1 for _ in TASKS.iterdir()) if TASKS.exists() else threading.active_count()
