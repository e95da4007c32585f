"""The boundary of the trainer's native code: arrays of every kind, networks of odd widths, threads, forks."""

import copy
import gc
import importlib
import os
import pickle
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

kernels = importlib.import_module("hotloop.train._kernels")

CREWS = [kernels.make(name, 1, 0) for name in kernels.NAMES]
CREW = CREWS[0]

ROWS, INPUTS, HIDDEN, HEADS = 5, 3, 4, (2, 1)

REFUSED = (TypeError, ValueError, IndexError, MemoryError, OverflowError)

Arrays = list[Any]


def f32(*shape: int) -> NDArray[np.float32]:
    return np.full(shape, 0.5, np.float32)


def network() -> Any:
    made = kernels.Network([INPUTS, HIDDEN], list(HEADS))
    made.pack(CREW, weights())
    return made


def weights() -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    shapes = [(HIDDEN, INPUTS), *((width, HIDDEN) for width in HEADS)]
    return [(f32(*shape), f32(shape[0])) for shape in shapes]


def scaling() -> Arrays:
    return [f32(ROWS, INPUTS), f32(INPUTS), f32(INPUTS), 10.0, f32(ROWS, INPUTS)]


def choosing() -> Arrays:
    masks = np.ones((ROWS, 4), bool)
    return [f32(ROWS, 4), masks, f32(ROWS), np.zeros(ROWS, np.int32), np.zeros(ROWS, np.int64), f32(ROWS)]


def learning() -> Arrays:
    index = np.arange(ROWS)
    labels = np.zeros(ROWS, np.int64)
    told = [np.ones(ROWS, np.int64), f32(ROWS), f32(ROWS), f32(ROWS), np.ones((ROWS, 4), bool), labels]
    return [f32(ROWS, 4), f32(ROWS), index, *told, 0.2, 0.5, 0.01, 0.1, True, f32(ROWS, 4), f32(ROWS)]


CALLS: dict[str, tuple[Callable[[], Arrays], Callable[..., Any]]] = {
    "scale": (scaling, CREW.scale),
    "choose": (choosing, CREW.choose),
    "learn": (learning, CREW.learn),
}


def as_it_is(array: NDArray[Any]) -> NDArray[Any]:
    return array


def longer(array: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([array, array])


def wider(array: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([array, array], axis=-1)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    array = array.copy()
    array.setflags(write=False)
    return array


WAYS: dict[str, Callable[[NDArray[Any]], Any]] = {
    "as it is": as_it_is,
    "longer": longer,
    "shorter": lambda array: array[:-1].copy(),
    "wider": wider,
    "empty": lambda array: array[:0].copy(),
    "no columns": lambda array: array[..., :0].copy(),
    "every other": lambda array: np.repeat(array, 2, axis=0)[::2],
    "backwards": lambda array: array[::-1],
    "one more axis": lambda array: array[None],
    "no axes": lambda array: array.reshape(-1)[:1].reshape(()),
    "turned": lambda array: np.asfortranarray(np.stack([array, array])[0].T).T,
    "double": lambda array: array.astype(np.float64),
    "narrow": lambda array: array.astype(np.int16),
    "objects": lambda array: array.astype(object),
    "read-only": read_only,
    "odd": lambda array: (
        np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:].view(array.dtype).reshape(array.shape)
    ),
    "a list": lambda array: array.tolist(),
    "nothing": lambda _: None,
    "huge numbers": lambda array: (
        np.full_like(array, np.iinfo(array.dtype).max) if array.dtype.kind == "i" else array
    ),
    "negative": lambda array: np.full_like(array, -1) if array.dtype.kind in "if" else array,
    "no numbers": lambda array: np.full_like(array, np.nan) if array.dtype.kind == "f" else array,
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("way", WAYS)
def test_a_kernel_takes_what_fits_and_refuses_the_rest(name: str, way: str) -> None:
    make, call = CALLS[name]
    for place, given_ in enumerate(make()):
        if isinstance(given_, np.ndarray):
            arrays = make()
            arrays[place] = WAYS[way](arrays[place])
            is_done(call, arrays)


@settings(max_examples=300)
@given(st.sampled_from(sorted(CALLS)), st.data())
def test_kernels_stay_in_their_arrays_whatever_they_are_given(name: str, data: st.DataObject) -> None:
    make, call = CALLS[name]
    arrays = make()
    for place, given_ in enumerate(arrays):
        if isinstance(given_, np.ndarray):
            arrays[place] = WAYS[data.draw(st.sampled_from(sorted(WAYS)))](given_)
        elif isinstance(given_, float):
            arrays[place] = data.draw(st.floats(width=32))
    is_done(call, arrays)


def is_done(call: Callable[..., Any], arrays: Sequence[Any]) -> bool:
    """Whether it was done; what is refused is refused by an error of Python's."""
    try:
        call(*arrays)
    except REFUSED:
        return False
    return True


@pytest.mark.parametrize("name", CALLS)
def test_what_fits_is_done(name: str) -> None:
    make, call = CALLS[name]
    assert is_done(call, make())


@pytest.mark.parametrize("uniform", [-1.0, 0.0, 1.0, 2.0, np.nan, np.inf])
@pytest.mark.parametrize("logit", [0.0, -np.inf, np.inf, np.nan, 3e38])
@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("crew", CREWS, ids=kernels.NAMES)
def test_an_action_is_chosen_among_those_there_are(
    uniform: float, logit: float, allowed: bool, crew: Any
) -> None:
    arrays = choosing()
    arrays[0][:], arrays[1][:], arrays[2][:] = logit, allowed, uniform
    crew.choose(*arrays)
    assert ((arrays[4] >= 0) & (arrays[4] < 4)).all()


def test_without_actions_or_with_too_many_nothing_is_chosen() -> None:
    for count in (0, kernels.MOST_ACTIONS + 1):
        arrays = choosing()
        arrays[0], arrays[1] = f32(ROWS, count), None
        with pytest.raises(ValueError, match="logits"):
            CREW.choose(*arrays)


def test_parameters_are_moved_where_they_are_or_not_at_all() -> None:
    for way, change in WAYS.items():
        for place in range(4):
            arrays = [f32(64) for _ in range(4)]
            arrays[place] = change(arrays[place])
            before = np.array(arrays[0], copy=True) if arrays[0] is not None else None
            if is_done(CREW.move, ([tuple(arrays)], 1e-3, 0.9, 0.999, 1e-8, 1.0, 0.5)):
                assert isinstance(arrays[0], np.ndarray), way
                stays = arrays[0].size == 0 or way == "no numbers"  # of which no step is made
                assert stays or not np.array_equal(before, arrays[0]), (way, place)
    assert is_done(CREW.move, ([], 1e-3, 0.9, 0.999, 1e-8, 1.0, 0.5))


widths = st.lists(st.integers(-1, 40), max_size=4)


@settings(max_examples=100)
@given(widths, widths, st.integers(0, 70))
@example([], [2], 1)
@example([3], [], 1)
@example([3, 0, 4], [2], 3)
@example([3, 4], [0, 2], 3)
def test_a_network_of_any_widths_is_made_and_passed_or_refused(
    inner: list[int], heads: list[int], rows: int
) -> None:
    try:
        made = kernels.Network(inner, heads)
    except REFUSED:
        assert not inner or not heads or min(*inner, *heads, 1) < 1
        return
    parts = [*zip(inner[1:], inner, strict=False), *((head, inner[-1]) for head in heads)]
    made.pack(CREW, [(f32(*shape), f32(shape[0])) for shape in parts])
    seen, told = f32(rows, inner[0]), [f32(rows, head) for head in heads]
    found = [(f32(*shape), f32(shape[0])) for shape in parts]
    made.forward(CREW, seen, None, told, True)
    assert is_done(made.backward, (CREW, seen, None, told, found, f32(rows, inner[0]))) is (rows > 0)


def test_a_network_that_was_given_no_weights_says_what_its_zeros_say() -> None:
    made, told = kernels.Network([INPUTS, HIDDEN], list(HEADS)), [f32(ROWS, width) for width in HEADS]
    made.forward(CREW, f32(ROWS, INPUTS), None, told, False)
    assert not any(each.any() for each in told)


def test_a_way_back_needs_a_way_there() -> None:
    made, found = network(), weights()
    for rows in (0, ROWS):
        told = [f32(rows, width) for width in HEADS]
        with pytest.raises(ValueError, match="rows"):
            made.backward(CREW, f32(rows, INPUTS), None, told, found, None)
        made.forward(CREW, f32(rows, INPUTS), None, told, False)


@pytest.mark.parametrize("way", WAYS)
def test_a_network_takes_what_fits_and_refuses_the_rest(way: str) -> None:
    made = network()
    for place in range(2):
        heads = [f32(ROWS, width) for width in HEADS]
        heads[place] = WAYS[way](heads[place])
        before = None if heads[place] is None else np.array(heads[place], copy=True)
        if is_done(made.forward, (CREW, f32(ROWS, INPUTS), None, heads, True)):
            assert isinstance(heads[place], np.ndarray)
            assert not np.array_equal(before, heads[place]), "what it says is written where it was asked for"
    for part in range(3):
        for place in range(2):
            lists = weights()
            pair = list(lists[part])
            pair[place] = WAYS[way](pair[place])
            lists[part] = (pair[0], pair[1])
            is_done(made.pack, (CREW, lists))
            if is_done(
                made.backward, (CREW, f32(ROWS, INPUTS), None, [f32(ROWS, w) for w in HEADS], lists, None)
            ):
                assert isinstance(pair[place], np.ndarray)
                assert not np.array_equal(pair[place], np.full_like(pair[place], 0.5)), way


@pytest.mark.parametrize("index", [[0, 4, 4], [-1], [ROWS], [2**62], []])
def test_a_pass_reads_no_row_there_is_not(index: list[int]) -> None:
    made, rows = network(), np.array(index, np.int64)
    told = [f32(len(index), width) for width in HEADS]
    fits = all(0 <= each < ROWS for each in index)
    assert is_done(made.forward, (CREW, f32(ROWS, INPUTS), rows, told, True)) is fits


def test_sums_take_columns_that_are_alike_and_keep_them() -> None:
    kinds = (np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_)
    for workers in (1, 3):
        sums = kernels.sums_of([np.ones(4_000, kind) for kind in kinds], workers)
        gc.collect()
        spoil = [np.full(4_000, 7, kind) for kind in kinds]
        sums.add(np.arange(4_000))
        assert [sum(each) for each in sums.take()] == [4_000.0] * len(kinds)
        for rows in ([-1], [4_000], [2**62]):
            with pytest.raises(ValueError, match="rows"):
                sums.add(np.array(rows))
        del spoil
    assert kernels.sums_of([], 1).take() == []
    assert not is_done(kernels.sums_of, ([np.ones(3)], -3))
    for columns in ([np.ones(3), np.ones(4)], [np.ones(3, np.int16)], [np.ones((3, 1))], [np.ones(6)[::2]]):
        assert not is_done(kernels.sums_of, (columns, 1))


def test_nothing_of_it_is_pickled_or_copied() -> None:
    for each in (CREW, network(), kernels.sums_of([], 1)):
        for way in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError):
                way(each)


def test_no_kernels_of_another_name_are_made() -> None:
    for name in ("", "plain\0", "avx1024"):
        with pytest.raises(ValueError, match="no kernels"):
            kernels.make(name, 1, 0)


def passed(made: Any) -> bytes:
    told = [f32(ROWS, width) for width in HEADS]
    made.forward(CREW, f32(ROWS, INPUTS), None, told, True)
    found = weights()
    made.backward(CREW, f32(ROWS, INPUTS), None, told, found, None)
    return b"".join(each.tobytes() for pair in found for each in pair)


def test_networks_of_many_threads_do_not_meet() -> None:
    ends: list[bytes] = []
    users = [
        threading.Thread(target=lambda: ends.extend(passed(network()) for _ in range(20))) for _ in range(3)
    ]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert len(ends) == 60
    assert len(set(ends)) == 1


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_network_and_sums_go_on_in_a_forked_process() -> None:
    made, sums = network(), kernels.sums_of([np.ones(9_000)], 3)
    expected = passed(made)
    sums.add(np.arange(9_000))
    child = os.fork()
    if child == 0:
        same = passed(made) == expected
        sums.add(np.arange(9_000))
        os._exit(0 if same and sum(sums.take()[0]) == 18_000 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert sum(sums.take()[0]) == 9_000
