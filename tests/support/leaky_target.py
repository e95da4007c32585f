"""A target, `leaky_target.py:make`: an env that leaks as it is told: Python's memory, C's, files, threads."""

import ctypes
import os
import threading
import time
from itertools import repeat
from typing import Any

LIBRARY = ctypes.CDLL(None)
LIBRARY.malloc.restype = ctypes.c_void_p
LIBRARY.malloc.argtypes = [ctypes.c_size_t]
LIBRARY.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]

SPINS = 3_000
"""Turns of an empty loop in a step, nearly all of it: what a slow-down is added to."""

SLOWER = 1.03
"""A minute."""


class Leaky:
    """Steps do nothing for a while, and leave something behind."""

    num_actions = 2

    def __init__(self, kind: str, every: int) -> None:
        self.kind, self.every = kind, every
        self.kept: list[Any] = []
        self.steps, self.began = 0, 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        return 0, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        if self.steps % self.every == 0:
            self.leak()
        for _ in repeat(None, round(SPINS * self.slowness())):  # every turn as long as another
            pass
        return 0, 0.0, False, False, {}

    def leak(self) -> None:
        """A kilobyte for each step since the last time, a file, or a thread."""
        if self.kind == "python":
            self.kept.append(bytearray(1024 * self.every))
        elif self.kind == "native":
            LIBRARY.memset(LIBRARY.malloc(1024 * self.every), 1, 1024 * self.every)
        elif self.kind == "files":
            self.kept.append(os.open(os.devnull, os.O_RDONLY))
        elif self.kind == "threads":
            threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()

    def slowness(self) -> float:
        """So many times as slow every minute, where that is what it does."""
        if self.kind != "slow":
            return 1.0
        self.began = self.began or time.monotonic()
        return SLOWER ** ((time.monotonic() - self.began) / 60)


def make(kind: str = "clean", every: int = 1, seed: int = 42) -> Leaky:
    return Leaky(kind, int(every))
