"""Every kind of index answers as looking at every point does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import hotloop
from hotloop.core.errors import InputError
from hotloop.envs import native
from hotloop.envs.spatial import KINDS, UPDATES, Index

pytestmark = pytest.mark.skipif(native.load_native() is None, reason="the native module is not built")
every_kind = pytest.mark.parametrize("kind", KINDS)

Points = NDArray[np.float32]

# Whole numbers meet borders and each other; others are anywhere.
coordinates = st.one_of(st.integers(-3, 12).map(float), st.floats(-20, 120, width=32))
places = st.tuples(coordinates, coordinates)


def rows(given: list[tuple[float, float]]) -> Points:
    return np.array(given, np.float32).reshape(-1, 2)


def away(points: Points, place: Points) -> Points:
    apart = points - place
    squares: Points = apart[:, 0] * apart[:, 0] + apart[:, 1] * apart[:, 1]
    return squares


def check(index: Index, points: Points, asked: Points, reach: float) -> None:
    """Hold every query against brute force."""
    offsets, ids = index.nearby(asked, reach)
    nearest, _ = index.nearest(asked)
    boxes = np.concatenate([asked - np.float32(reach), asked + np.float32(reach)], axis=1)
    box_offsets, box_ids = index.range(boxes)
    for k, place in enumerate(asked):
        squares = away(points, place)
        limit = np.float32(reach) * np.float32(reach)
        assert ids[offsets[k] : offsets[k + 1]].tolist() == np.flatnonzero(squares <= limit).tolist()
        assert nearest[k] == (int(squares.argmin()) if len(points) else -1)
        inside = ((points >= boxes[k, :2]) & (points <= boxes[k, 2:])).all(axis=1)
        assert box_ids[box_offsets[k] : box_offsets[k + 1]].tolist() == np.flatnonzero(inside).tolist()


@every_kind
@settings(max_examples=60, deadline=None)
@given(
    given=st.lists(places, max_size=60),
    asked=st.lists(places, min_size=1, max_size=5),
    reach=st.integers(0, 40),
)
def test_answers_are_those_of_looking_at_every_point(
    kind: str, given: list[tuple[float, float]], asked: list[tuple[float, float]], reach: int
) -> None:
    points = rows(given)
    check(Index(kind, points), points, rows(asked + given[:5]), float(reach))


@every_kind
@pytest.mark.parametrize("updates", UPDATES)
@settings(max_examples=30, deadline=None)
@given(
    given=st.lists(places, min_size=1, max_size=60),
    moves=st.lists(st.tuples(st.integers(0, 59), places), max_size=20),
)
def test_points_that_moved_are_found_where_they_are(
    kind: str, updates: str, given: list[tuple[float, float]], moves: list[tuple[int, tuple[float, float]]]
) -> None:
    points = rows(given)
    index = Index(kind, points, updates=updates)
    for half in (moves[: len(moves) // 2], moves[len(moves) // 2 :]):
        for slot, place in half:
            points[slot % len(points)] = place
            index.move([slot % len(points)], [place])
        check(index, points, points[:4], 7.0)
    assert index.counters["stale_queries"] == 0


@every_kind
def test_many_equal_points_are_all_found(kind: str) -> None:
    points = np.zeros((1_000, 2), np.float32)
    offsets, ids = Index(kind, points).nearby([[0.0, 0.0]], 0.0)
    assert (offsets.tolist(), ids.tolist()) == ([0, 1_000], list(range(1_000)))


@every_kind
def test_a_small_move_sorts_a_region_and_not_everything(kind: str) -> None:
    rng = np.random.default_rng(1)
    points = rng.uniform(0, 100, (5_000, 2)).astype(np.float32)
    index = Index(kind, points, cell=2.0)
    found = 0
    for slot in range(200):
        points[slot] += np.float32(0.3)
        index.move([slot], points[slot])
        index.nearby(points[slot], 1.0)
        found += 1
    counted = index.counters
    assert counted["rebuilds"] < found / 2
    assert counted["queries"] == found
    if kind == "brute":  # nothing is in any order
        assert counted["partial_rebuilds"] == 0
    elif kind != "hash":
        assert counted["partial_rebuilds"] > 0
    check(index, points, points[:50], 3.0)


@every_kind
def test_only_the_kinds_that_are_asked_for_are_found(kind: str) -> None:
    index = Index(kind, [[0, 0], [1, 0], [2, 0]], kinds=[0, 1, 2])
    assert index.nearby([0, 0], 5.0, kinds=[0, 2])[1].tolist() == [0, 2]
    assert index.nearest([0, 0], kinds=[1])[0].tolist() == [1]
    assert index.nearest([0, 0], kinds=[5])[0].tolist() == [-1]


def test_wrong_input_is_refused() -> None:
    assert hotloop.spatial.Index is Index
    with pytest.raises(InputError, match="did you mean grid"):
        Index("gridd", [[0, 0]])
    index = Index("grid", [[0, 0]])
    for wrong in ([[0, float("nan")]], [[0, 0, 0]], "here"):
        with pytest.raises(InputError):
            Index("grid", wrong)
    with pytest.raises(InputError):
        index.nearby([0, 0], -1.0)
    with pytest.raises(InputError):
        index.move([1], [[0, 0]])
    with pytest.raises(InputError):
        Index("grid", [[0, 0]], updates="sometimes")


@every_kind
def test_the_memory_of_an_index_is_told_and_grows_with_its_points(kind: str) -> None:
    few, many = (Index(kind, np.random.default_rng(1).random((count, 2)) * 100) for count in (10, 1_000))
    assert 7 * 4 * 1_000 <= many.bytes < 100 * 1_000
    assert few.bytes < many.bytes
