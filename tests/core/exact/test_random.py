"""Random numbers: known values, which native/tests/test_random.cpp asserts too, and their properties."""

from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.exact.random import Draws, Pcg32, mix

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
