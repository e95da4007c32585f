"""Functions near the true values, random numbers with known ones; native/tests asserts the same of both."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core import exact_math
from hotloop.core.exact_math import Draws, Pcg32, f32, mix


def bits(x: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", x))[0])


def sweep() -> list[float]:
    """The inputs that native/tests/test_maths.cpp sweeps too: exact in float32, so no rounding on the way."""
    return [(i - 8192) / 128.0 for i in range(16384)]


def test_every_bit_equals_the_native_half() -> None:
    words = []
    for x in sweep():
        positive = abs(x) + 0.0078125
        results = (
            exact_math.exp(x),
            exact_math.log(positive),
            exact_math.sin(x),
            exact_math.cos(x),
            exact_math.pow(positive, x / 16),
        )
        words.extend(bits(result) for result in results)
    assert mix(*words) == 0x1BB0BAFCBB806F84


def test_they_are_the_true_values_rounded() -> None:
    for x in sweep():
        assert exact_math.exp(x) == pytest.approx(math.exp(x), rel=2**-23)
        assert exact_math.sin(x) == pytest.approx(math.sin(x), rel=2**-23, abs=1e-9)
        assert exact_math.cos(x) == pytest.approx(math.cos(x), rel=2**-23, abs=1e-9)


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_log_is_the_true_value_rounded(x: float) -> None:
    assert exact_math.log(x) == pytest.approx(math.log(x), rel=2**-23, abs=1e-12)


@given(st.floats(0.125, 100, width=32), st.floats(-8, 8, width=32))
def test_pow_is_the_true_value_rounded(x: float, y: float) -> None:
    assert exact_math.pow(x, y) == pytest.approx(x**y, rel=2**-22)


def test_the_edges() -> None:
    assert (exact_math.exp(1000), exact_math.exp(-1000)) == (math.inf, 0.0)
    assert (exact_math.log(0), exact_math.log(math.inf)) == (-math.inf, math.inf)
    assert math.isnan(exact_math.log(-1))
    assert (exact_math.pow(0, 2), exact_math.pow(0, 0), exact_math.pow(5, 0)) == (0.0, 1.0, 1.0)
    assert f32(0.1) != 0.1


WORDS = st.integers(0, 2**64 - 1)


def test_known_values_which_the_native_half_asserts_too() -> None:
    draws = Draws(42, 7)
    stream = Pcg32(42)
    assert mix(1, 2, 3) == 0xEABCFA2C623C5A59
    assert draws.word(0) == 0xAD566CF70F2E9959
    assert [draws.below(lane, 10) for lane in range(8)] == [6, 4, 1, 8, 5, 7, 3, 6]
    assert [stream.next() for _ in range(4)] == [2707161783, 2068313097, 3122475824, 2211639955]


@given(WORDS, WORDS)
def test_mix_depends_on_the_order(one: int, other: int) -> None:
    assert (mix(one, other) == mix(other, one)) == (one == other)


@given(WORDS, WORDS, st.integers(0, 2**32), st.integers(1, 2**32 - 1))
def test_below_stays_below(seed: int, tick: int, lane: int, bound: int) -> None:
    assert 0 <= Draws(seed, tick).below(lane, bound) < bound


def test_below_is_even_over_lanes() -> None:
    draws = Draws(1, 1)
    counts = [0] * 8
    for lane in range(80_000):
        counts[draws.below(lane, 8)] += 1
    # Five standard deviations of a fair share of 10,000.
    assert max(abs(count - 10_000) for count in counts) < 5 * (80_000 * 1 / 8 * 7 / 8) ** 0.5


@given(WORDS, st.integers(0, 300))
def test_skipping_equals_drawing(seed: int, draws: int) -> None:
    walked, jumped = Pcg32(seed), Pcg32(seed).skip(draws)
    for _ in range(draws):
        walked.next()
    assert walked.state == jumped.state
