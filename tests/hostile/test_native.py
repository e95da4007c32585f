"""The native boundary: garbage to load, forks, and two threads with one batch."""

import os
import random
import signal
import threading
from collections.abc import Callable

import numpy as np
import pytest

from hotloop.core.errors import InputError
from hotloop.core.registry import worlds
from hotloop.envs.batch import Batch, OrderError, unsealed
from hotloop.envs.open import make

WORLDS = [world.name for world in worlds().values()]


def batch_of(world: str, **more: object) -> Batch:
    batch = make(world, impl="native", num_envs=4, **more)
    batch.reset()
    return batch


def play(batch: Batch, steps: int = 20) -> bytes:
    """What a batch comes to, from the same actions each time."""
    chosen = np.random.default_rng(1)
    for actions in batch.draw(chosen, steps):
        batch.step(actions)
    return batch.digest().tobytes()


@pytest.mark.parametrize("world", WORLDS)
def test_a_state_of_which_a_byte_was_turned_is_never_stepped(world):
    batch, chance = batch_of(world), random.Random(7)
    before = batch.digest().tobytes()
    saved = batch.save(0)
    head = saved.index(b"\n") + 1
    for _ in range(90):
        damaged = bytearray(saved)
        for _ in range(chance.choice((1, 8, 400))):
            place = chance.randrange(head, len(damaged))
            damaged[place] ^= chance.randrange(1, 256)
        with pytest.raises(InputError, match="the saved env is damaged: its checksum does not fit"):
            batch.load(0, bytes(damaged))
    with pytest.raises(InputError, match="its checksum does not fit"):
        batch.load(0, saved[:head] + chance.randbytes(len(saved) - head))
    assert batch.digest().tobytes() == before


def in_child(body: Callable[[], bool], patience: int = 20) -> None:
    """Run something in a forked process, which must come to a good end in time."""
    child = os.fork()
    if child == 0:
        signal.alarm(patience)
        os._exit(0 if body() else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_batch_goes_on_in_a_forked_process_as_in_its_own(threads):
    batch, twin = batch_of("grid/toy", threads=threads), batch_of("grid/toy", threads=threads)
    expected = play(twin)
    in_child(lambda: play(batch) == expected)

    def again() -> bool:
        in_child(lambda: play(batch) == expected)
        return play(batch) == expected

    in_child(again)
    assert play(batch) == expected
    batch.close()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_batch_that_a_forked_process_never_used_ends_with_it():
    batch = batch_of("grid/toy", threads=2)

    def close() -> bool:
        batch.close()
        return True

    in_child(close)
    batch.close()


@pytest.mark.parametrize("threads", [1, 2])
def test_two_threads_with_one_batch_are_refused_and_none_hangs(threads):
    batch = make("grid/toy", impl="native", num_envs=256, threads=threads)
    batch.reset()
    actions = np.zeros((256, batch.spec.agents), np.int32)
    refused, done = [], []

    def use() -> None:
        for _ in range(300):
            try:
                batch.step(actions)
            except OrderError as error:
                refused.append(str(error))
        done.append(True)

    users = [threading.Thread(target=use, daemon=True) for _ in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join(timeout=60)
    assert len(done) == 4
    assert set(refused) == {"two threads use this batch at once: give each its own, or take turns"}
    batch.step(actions)


def test_an_env_of_an_older_version_is_not_called_damaged() -> None:
    with pytest.raises(InputError, match="of an older version, without a checksum"):
        unsealed(b"hotloop 1 native 0123456789ab\n" + bytes(64))
