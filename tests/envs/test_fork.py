"""A fork is the same env in another place, and goes on by itself."""

import pytest
from support.play import snapshot

import hotloop
from hotloop.core.errors import InputError
from hotloop.envs.batch import OrderError

impls = pytest.mark.parametrize("impl", ["native", "reference"])


@impls
@pytest.mark.parametrize("target", ["cards/keywords", "grid/toy", "prospector", "farm"])
def test_a_fork_is_the_same_in_every_byte_and_leaves_the_first_alone(target: str, impl: str) -> None:
    batch = hotloop.make(target, num_envs=3, impl=impl, seed=4)
    batch.reset()
    for _ in range(3):
        batch.step(batch.choose("random"))
    before = snapshot(batch)
    batch.fork(0, 2)
    after = snapshot(batch)
    for name, array in after.items():
        if name != "final_observations":
            assert array[2].tobytes() == array[0].tobytes() == before[name][0].tobytes(), name
            assert array[1].tobytes() == before[name][1].tobytes(), name
    assert after["digest"][2] != before["digest"][2]
    actions = batch.choose("random").copy()
    actions[2] = actions[0]
    batch.step(actions)
    assert batch.digest()[2] == batch.digest()[0]
    assert batch.observations[2].tobytes() == batch.observations[0].tobytes()


@impls
def test_a_fork_of_what_is_not_there_is_refused(impl: str) -> None:
    batch = hotloop.make("cards/mirror", num_envs=2, impl=impl)
    with pytest.raises(OrderError, match="before reset"):
        batch.fork(0, 1)
    batch.reset()
    with pytest.raises(InputError, match="env 2 does not exist"):
        batch.fork(0, 2)
    kept = batch.digest().tolist()
    batch.fork(1, 1)
    assert batch.digest().tolist() == kept


def test_a_fork_of_an_ended_env_waits_for_its_reset() -> None:
    batch = hotloop.make("cards/mirror", num_envs=2, autoreset=False, max_decisions=3)
    batch.reset()
    while not (batch.terminals | batch.truncations)[0]:
        batch.step(batch.choose("random"))
    batch.fork(0, 1)
    batch.reset_many([0])
    with pytest.raises(OrderError, match="reset the finished envs"):
        batch.step(batch.choose("random"))
    batch.reset_many([1])
    batch.step(batch.choose("random"))
