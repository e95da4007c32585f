"""The engine's own exp, log, sin, cos and pow: near the true values, and equal to the native ones."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.exact import maths
from hotloop.core.exact.maths import f32
from hotloop.core.exact.random import mix


def bits(x: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", x))[0])


def sweep() -> list[float]:
    """The inputs that native/tests/test_maths.cpp sweeps too: exact in float32, so no rounding on the way."""
    return [(i - 8192) / 128.0 for i in range(16384)]


def test_every_bit_equals_the_native_half() -> None:
    words = []
    for x in sweep():
        positive = abs(x) + 0.0078125
        results = (maths.exp(x), maths.log(positive), maths.sin(x), maths.cos(x), maths.pow(positive, x / 16))
        words.extend(bits(result) for result in results)
    assert mix(*words) == 0x1BB0BAFCBB806F84


def test_they_are_the_true_values_rounded() -> None:
    for x in sweep():
        assert maths.exp(x) == pytest.approx(math.exp(x), rel=2**-23)
        assert maths.sin(x) == pytest.approx(math.sin(x), rel=2**-23, abs=1e-9)
        assert maths.cos(x) == pytest.approx(math.cos(x), rel=2**-23, abs=1e-9)


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_log_is_the_true_value_rounded(x: float) -> None:
    assert maths.log(x) == pytest.approx(math.log(x), rel=2**-23, abs=1e-12)


@given(st.floats(0.125, 100, width=32), st.floats(-8, 8, width=32))
def test_pow_is_the_true_value_rounded(x: float, y: float) -> None:
    assert maths.pow(x, y) == pytest.approx(x**y, rel=2**-22)


def test_the_edges() -> None:
    assert (maths.exp(1000), maths.exp(-1000)) == (math.inf, 0.0)
    assert (maths.log(0), maths.log(math.inf)) == (-math.inf, math.inf)
    assert math.isnan(maths.log(-1))
    assert (maths.pow(0, 2), maths.pow(0, 0), maths.pow(5, 0)) == (0.0, 1.0, 1.0)
    assert f32(0.1) != 0.1
