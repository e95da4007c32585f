"""Sums of the rows of episodes that ended, exact in every order: natively where that can be had.

Whoever asks for them gives the live columns once, one number an env; every step names its rows, and nothing
of them is kept but the sums.
"""

from collections.abc import Mapping
from math import fsum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hotloop.train.kernels import load

# What native code adds up; columns of anything else are kept.
KINDS = tuple(map(np.dtype, ("float32", "float64", "int32", "int64", "uint8", "bool")))

WORTH_SHARING = 32_768  # Envs from which on a crew is worth waking: some hundred microseconds where it sleeps


class Sums(Protocol):
    """Sums over some columns."""

    def add(self, rows: NDArray[np.int64]) -> None:
        """Add the present numbers of some rows."""

    def take(self) -> dict[str, float]:
        """The sums by name, each rounded once; from here on they begin at 0."""


class NativeSums:
    """See `Sums`."""

    def __init__(self, module: Any, columns: Mapping[str, NDArray[Any]], *, threads: int) -> None:
        self._columns = dict(columns)  # native code reads them where they are
        self._run = module.sums_of(list(self._columns.values()), threads)

    def add(self, rows: NDArray[np.int64]) -> None:
        self._run.add(rows)

    def take(self) -> dict[str, float]:
        return dict(zip(self._columns, map(fsum, self._run.take()), strict=True))


class KeptSums:
    """See `Sums`: keeps all there is to add, in NumPy."""

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        self._columns = dict(columns)
        self._kept: dict[str, list[NDArray[np.float64]]] = {name: [] for name in columns}

    def add(self, rows: NDArray[np.int64]) -> None:
        for name, live in self._columns.items():
            self._kept[name].append(live[rows].astype(np.float64))

    def take(self) -> dict[str, float]:
        sums = {name: fsum(each for part in kept for each in part) for name, kept in self._kept.items()}
        for kept in self._kept.values():
            kept.clear()
        return sums


def sums_of(columns: Mapping[str, NDArray[Any]], *, threads: int) -> Sums:
    """Who adds up these columns, all with as many rows, with so many threads where there is much to add."""
    module = load()
    if isinstance(module, ImportError) or not all(map(is_readable, columns.values())):
        return KeptSums(columns)
    envs = max(map(len, columns.values()), default=0)
    return NativeSums(module, columns, threads=threads if envs >= WORTH_SHARING else 1)


def is_readable(column: NDArray[Any]) -> bool:
    """Whether native code can read a column where it is."""
    return column.dtype in KINDS and column.flags.c_contiguous
