"""The orchard of orchard.cpp as a batch for Python: arrays made once, one call a step, its own phases.

    hotloop validate examples/orchard_native.py:make 2000 --against examples/orchard.py:make
    hotloop compare examples/orchard.py:make examples/orchard_native.py:make
    hotloop profile examples/orchard_native.py:make num_envs=1024

The engine is built on the first run, by c++ or what CXX names, into a folder below the temporary one.
"""

import ctypes
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import hotloop

SOURCE = Path(__file__).with_name("orchard.cpp")
FLAGS = ("-O3", "-std=c++17", "-shared", "-fPIC")
SEEN = (4, 9, 9)
PHASES = ("act", "fly", "observe", "step")


def engine() -> Any:
    """The library, built where it was not or where its source has changed."""
    name = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    built = Path(tempfile.gettempdir()) / f"orchard-{os.getuid()}" / f"{name}.so"
    if not built.exists():
        built.parent.mkdir(mode=0o700, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=built.parent, suffix=".so", delete=False) as made:
            command = (os.environ.get("CXX", "c++"), *FLAGS, f"-I{hotloop.include_dir()}", str(SOURCE))
            subprocess.run([*command, "-o", made.name], check=True)
            Path(made.name).rename(built)
    library = ctypes.CDLL(str(built))
    library.orchard_new.restype = ctypes.c_void_p
    return library


class Orchards:
    """All orchards of the engine; the arrays are its own, rewritten by the next step."""

    num_actions = 5

    def __init__(self, num_envs: int, timed: bool) -> None:
        self.num_envs, self.engine = num_envs, engine()
        self.batch = ctypes.c_void_p(self.engine.orchard_new(num_envs, timed))
        self.seen = np.zeros((num_envs, *SEEN), np.uint8)
        self.rewards = np.zeros(num_envs, np.float32)
        self.terminal, self.truncated = np.zeros((2, num_envs), bool)
        self.ns = np.zeros(len(PHASES), np.uint64)
        outputs = (self.seen, self.rewards, self.truncated)
        self.places = [ctypes.c_void_p(array.ctypes.data) for array in outputs]

    def reset(self, seed: int | None = None) -> Any:
        given = ctypes.c_int64(-1 if seed is None else seed % 2**32)
        self.engine.orchard_reset(self.batch, given, self.places[0])
        return self.seen

    def step(self, actions: Any) -> Any:
        chosen = np.ascontiguousarray(actions, np.int32)
        if chosen.shape != (self.num_envs,) or chosen.min() < 0 or chosen.max() >= self.num_actions:
            raise ValueError(f"actions must be {self.num_envs} numbers from 0 to {self.num_actions - 1}")
        self.engine.orchard_step(self.batch, ctypes.c_void_p(chosen.ctypes.data), *self.places)
        return self.seen, self.rewards, self.terminal, self.truncated, {}

    def phase_totals(self) -> dict[str, int]:
        self.engine.orchard_phases(self.batch, ctypes.c_void_p(self.ns.ctypes.data))
        return dict(zip(PHASES, map(int, self.ns), strict=True))

    def close(self) -> None:
        self.engine.orchard_free(self.batch)
        self.batch = None


def make(num_envs: int = 16) -> Orchards:
    return Orchards(num_envs, bool(os.environ.get("HOTLOOP_PROFILING")))
