import numpy as np
import pytest

from hotloop.core.errors import InputError
from hotloop.lab.validate.equal import EXACT, closeness_of

ONE = np.array([[1.0, -0.0], [np.nan, 3.0]], np.float32)


def moved(place: tuple[int, int], ulps: int) -> np.ndarray:
    other = ONE.copy()
    bits = other.view(np.int32)
    bits[place] += ulps
    return other


def test_bytes_tell_zeros_apart_and_know_nan_by_its_bits() -> None:
    other = ONE.copy()
    assert EXACT.first_place(ONE, other) is None
    other[0, 1] = 0.0
    assert EXACT.first_place(ONE, other) == (0, 1)


@pytest.mark.parametrize(("ulps", "place"), [(2, None), (-2, None), (3, (1, 1)), (-3, (1, 1))])
def test_ulps_are_representable_numbers(ulps: int, place: tuple[int, int] | None) -> None:
    assert closeness_of("ulp:2").first_place(ONE, moved((1, 1), ulps)) == place


def test_ulps_go_through_zero() -> None:
    below, above = np.array([-1e-45], np.float32), np.array([1e-45], np.float32)
    assert closeness_of("ulp:2").first_place(below, above) is None
    assert closeness_of("ulp:1").first_place(below, above) == (0,)


def test_the_ends_of_double_precision_are_far_apart() -> None:
    low, high = np.array([-np.inf]), np.array([np.inf])
    assert closeness_of("ulp:1000000").first_place(low, high) == (0,)


@pytest.mark.parametrize("mode", ["ulp:1000", "tolerance:0.5"])
def test_nan_is_close_to_nan_alone(mode: str) -> None:
    other = ONE.copy()
    other.view(np.int32)[1, 0] ^= 1
    assert closeness_of(mode).first_place(ONE, other) is None
    other[1, 0] = 0
    assert closeness_of(mode).first_place(ONE, other) == (1, 0)


def test_a_tolerance_is_of_the_size_of_the_number() -> None:
    big, near, far = (np.array([value]) for value in (1e6, 1e6 + 0.9, 1e6 + 2))
    assert closeness_of("tolerance").first_place(big, near) is None
    assert closeness_of("tolerance").first_place(big, far) == (0,)


def test_whole_numbers_and_flags_are_compared_to_the_byte_in_every_mode() -> None:
    for mode in ("ulp:9", "tolerance:9"):
        one, other = np.array([1, 2]), np.array([1, 3])
        assert closeness_of(mode).first_place(one, other) == (1,)
        assert not closeness_of(mode).compares_state
    assert EXACT.compares_state


@pytest.mark.parametrize("word", ["", "bits", "bytes:1", "ulp", "ulp:-1", "ulp:1.5", "tolerance:nan"])
def test_other_words_are_refused(word: str) -> None:
    with pytest.raises(InputError, match="does not fit: expected bytes"):
        closeness_of(word)
