"""The native boundary: arrays of every kind, freed batches, pickles; run under AddressSanitizer too.

`./check boundary` runs this folder's native tests with a module that stops at any access out of bounds.
"""

import copy
import gc
import pickle
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hotloop.core.errors import HotloopError, InputError
from hotloop.envs.batch import Batch, OrderError
from hotloop.envs.open import make

ENVS, AGENTS = 3, 4

WHOLE = ("int32", "int64", "uint8")
"""Dtypes that a step takes."""

DTYPES = (*WHOLE, "int8", "uint16", "uint32", "uint64", "float32", "float64", "bool", "complex64", "U3", "O")


def grid(**more: object) -> Batch:
    batch = make("grid/toy", impl="native", num_envs=ENVS, agents=AGENTS, **more)
    batch.reset()
    return batch


BATCH = grid()

shapes = st.lists(st.integers(0, 6), max_size=4).map(tuple) | st.just((ENVS, AGENTS))


@st.composite
def arrays(draw: st.DrawFn) -> NDArray[Any]:
    """Of any shape and dtype, whole or seen through strides, sometimes read-only."""
    shape, dtype = draw(shapes), draw(st.sampled_from(DTYPES))
    whole = np.zeros(tuple(2 * extent for extent in shape), dtype)
    view = draw(st.sampled_from(("whole", "every other", "backwards", "turned", "again", "lent")))
    found: NDArray[Any] = np.zeros(shape, dtype)
    if view == "every other" and shape:
        found = whole[tuple(slice(None, None, 2) for _ in shape)]
    elif view == "backwards" and shape:
        found = found[tuple(slice(None, None, -1) for _ in shape)]
    elif view == "turned":
        found = np.zeros(shape[::-1], dtype).T
    elif view == "again" and shape:
        found = np.broadcast_to(np.zeros(shape[-1], dtype), shape)
    elif view == "lent" and dtype not in ("U3", "O"):
        found = np.frombuffer(bytes(found.nbytes + 1), np.uint8)[1:].view(dtype).reshape(shape)
    found.setflags(write=draw(st.booleans()) and found.flags.writeable)
    return found


@settings(max_examples=100)
@given(arrays())
def test_a_step_takes_what_fits_and_refuses_the_rest(actions: NDArray[Any]) -> None:
    fits = actions.shape == (ENVS, AGENTS) and actions.dtype.name in WHOLE
    before = BATCH.counters["env_steps"]
    try:
        BATCH.step(actions)
    except InputError as error:
        assert "actions" in str(error)  # noqa: PT017 - what a reader is told
        assert not fits or not actions.flags.c_contiguous
        assert BATCH.counters["env_steps"] == before
    else:
        assert fits
        assert BATCH.counters["env_steps"] == before + ENVS


@settings(max_examples=40)
@given(arrays())
def test_the_engine_itself_refuses_what_does_not_fit(given_: NDArray[Any]) -> None:
    engine = BATCH.engine
    for call in (engine.step, lambda each: engine.choose(0, each)):
        fits = given_.dtype == np.int32 and given_.shape == (ENVS, AGENTS) and given_.flags.c_contiguous
        try:
            call(given_)
        except (TypeError, ValueError, RuntimeError):
            continue
        assert fits


anything = st.sampled_from((0, 1, 2, 3, -1, 2**63, 2**64, -(2**70), 0.5, float("nan"), None, "1", "x"))


@settings(max_examples=40)
@given(st.lists(anything, max_size=4), st.lists(anything, max_size=4))
def test_resets_of_any_envs_with_any_seeds_are_done_or_refused(envs: list[Any], seeds: list[Any]) -> None:
    for reset in (lambda: BATCH.reset_many(envs, seeds), lambda: BATCH.reset(seeds)):
        try:
            reset()
        except (HotloopError, TypeError, ValueError, OverflowError):
            continue
    BATCH.step(np.zeros((ENVS, AGENTS), np.int32))


@settings(max_examples=40)
@given(st.binary(max_size=200), st.integers(-5, 5))
def test_no_bytes_are_loaded_that_were_not_saved(noise: bytes, env: int) -> None:
    before = BATCH.digest().tobytes()
    head = BATCH.save(0)
    for saved in (noise, head + noise, head[: len(noise)], noise + head, noise * 200):
        if saved == head:
            continue
        with pytest.raises(InputError):
            BATCH.load(env, saved)
        with pytest.raises((ValueError, TypeError)):
            BATCH.engine.load(0, saved)
    assert BATCH.digest().tobytes() == before


def test_a_freed_batch_takes_nothing_and_its_arrays_stay() -> None:
    batch = grid(threads=2)
    seen, step = batch.observations, batch.engine.step
    kept, actions = seen.copy(), np.ones((ENVS, AGENTS), np.int32)
    batch.close()
    refused: list[Callable[[], object]] = [batch.reset, batch.digest, partial(batch.step, actions)]
    for call in refused:
        with pytest.raises(OrderError, match="closed"):
            call()
    del batch, refused, call
    gc.collect()
    assert (seen == kept).all()
    step(actions)  # a bound method keeps what it is bound to
    del step
    gc.collect()
    assert seen.shape == kept.shape
    seen[...] = 0


def test_a_batch_is_neither_pickled_nor_copied() -> None:
    for way in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"pickle|copy"):
            way(BATCH.engine)
    with pytest.raises(TypeError):
        pickle.dumps(BATCH)


def test_batches_made_and_freed_by_many_threads_do_not_meet() -> None:
    ends: list[bytes] = []

    def live() -> None:
        for _ in range(4):
            batch = grid(threads=2)
            for _ in range(5):
                batch.step(np.full((ENVS, AGENTS), 1, np.int32))
            ends.append(batch.digest().tobytes())
            batch.close()

    users = [threading.Thread(target=live) for _ in range(3)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert len(ends) == 12
    assert len(set(ends)) == 1


@pytest.mark.parametrize("env", [-1, ENVS, 2**40, -(2**63)])
def test_an_env_that_is_not_there_is_none_of_the_engines_memory(env: int) -> None:
    engine = BATCH.engine
    for call in (BATCH.save, lambda each: BATCH.fork(0, each)):
        with pytest.raises(InputError):
            call(env)
    for raw in (engine.save, engine.digest, engine.picture, lambda each: engine.fork(0, each)):
        with pytest.raises((IndexError, TypeError)):
            raw(env)
    with pytest.raises(IndexError):
        engine.reset_many(np.array([env], np.int64), None)


def test_the_engine_takes_a_seed_an_env_and_no_fewer() -> None:
    for count in (0, 1, ENVS + 1):
        with pytest.raises(ValueError, match="one seed an env"):
            BATCH.engine.reset(np.zeros(count, np.uint64))
    with pytest.raises(ValueError, match="one seed an env"):
        BATCH.engine.reset_many(np.zeros(2, np.int64), np.zeros(1, np.uint64))
    with pytest.raises(IndexError):
        BATCH.engine.choose(99, np.zeros((ENVS, AGENTS), np.int32))
