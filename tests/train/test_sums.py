"""Exact sums: what fsum says of the same numbers, whoever adds them and in whatever order."""

import math
from math import fsum
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hotloop.train import load_kernels
from hotloop.train.windows import KeptSums, NativeSums, sums_of

native = pytest.mark.skipif(isinstance(load_kernels(), ImportError), reason="the native module is not built")
ROWS = np.arange(5_000, dtype=np.int64)


def columns(random: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Numbers of every kind, some of which cancel almost all of the others."""
    wide = random.standard_normal(5_000) * 10.0 ** random.integers(-300, 300, 5_000)
    wide[2_500:] = -wide[:2_500] * (1 + 2.0**-50)
    return {
        "wide": wide,
        "small": random.standard_normal(5_000) * 5e-324 * 7,
        "float32": random.standard_normal(5_000).astype(np.float32),
        "int32": random.integers(-9, 9, 5_000).astype(np.int32),
        "int64": random.integers(-(2**52), 2**52, 5_000),
        "flags": random.random(5_000) < 0.3,
    }


@native
@pytest.mark.parametrize("threads", [1, 3])
def test_they_are_what_fsum_says(threads: int) -> None:
    random = np.random.default_rng(7)
    live = columns(random)
    sums = NativeSums(load_kernels(), live, threads=threads)
    for turn in range(2):
        rows = random.permutation(ROWS)[: 5_000 - turn]
        for part in np.array_split(rows, 3):
            sums.add(part)
        found = sums.take()
        for name, column in live.items():
            assert found[name] == fsum(column[rows].astype(float)), name
    assert set(sums.take().values()) == {0.0}


@native
@pytest.mark.parametrize("odd", [math.inf, -math.inf, math.nan])
def test_what_is_no_finite_number_is_told(odd: float) -> None:
    live = {"x": np.array([1.0, odd, 2.0])}
    sums = NativeSums(load_kernels(), live, threads=1)
    sums.add(ROWS[:3])
    assert str(sums.take()["x"]) == str(odd)


@native
def test_rows_that_there_are_not_are_refused() -> None:
    sums = NativeSums(load_kernels(), {"x": np.zeros(3)}, threads=1)
    for rows in (np.array([3]), np.array([-1])):
        with pytest.raises(ValueError, match="rows of another shape"):
            sums.add(rows)
    with pytest.raises(ValueError, match="a column of another shape"):
        NativeSums(load_kernels(), {"x": np.zeros(3), "y": np.zeros(4)}, threads=1)


def test_numbers_that_native_code_does_not_read_are_kept() -> None:
    assert isinstance(sums_of({"x": np.zeros(4, np.float16)}, threads=1), KeptSums)
    assert isinstance(sums_of({"x": np.zeros((4, 2))[:, 0]}, threads=1), KeptSums)
