import re

import numpy as np
import pytest

import hotloop
from hotloop.core.errors import InputError, SetupError
from hotloop.envs.batch import Batch
from hotloop.lab.validate.equal import LEAST_STEPS, first_of, replay_both


def toy(**given: object) -> Batch:
    return hotloop.make("grid/toy", **{"num_envs": 2, "max_steps": 7} | given)


def spoiled(name: str, step: int, spoil, **given: object) -> Batch:
    """A batch whose field is spoiled after one of its steps."""
    batch = toy(**given)
    real, played = batch.step, iter(range(1, 10_000))

    def step_and_spoil(actions):
        real(actions)
        if next(played) == step:
            spoil(getattr(batch, name))

    batch.step = step_and_spoil
    return batch


def test_variants_of_one_workload_agree_to_the_byte():
    agreement = replay_both(toy(encoder="original"), toy(threads=2), steps=30)
    assert agreement.difference is None
    assert (agreement.steps, agreement.envs, agreement.comparisons) == (30, 2, 31 * 2 * 20)
    assert {"observations", "rewards", "terminals", "truncations", "digest"} <= set(agreement.fields)
    assert any(name.startswith("infos.") for name in agreement.fields)


def test_a_twin_agrees_with_native_code():
    assert replay_both(toy(impl="native"), toy(impl="reference"), steps=16).difference is None


def test_sides_of_different_width_are_compared_as_far_as_both_go():
    agreement = replay_both(toy(num_envs=2), toy(num_envs=5), steps=20)
    assert agreement.difference is None
    assert agreement.envs == 2


def test_another_seed_differs_at_the_reset():
    difference = replay_both(toy(), toy(seed=7), steps=20).difference
    assert difference.step == 0


@pytest.mark.parametrize("name", ["observations", "rewards", "terminals", "truncations"])
def test_the_first_difference_is_named_by_step_field_env_and_value(name):
    def spoil(array):
        last = array.reshape(-1)[-1:]
        last[:] = ~last if last.dtype == bool else last + 1

    difference = replay_both(toy(), spoiled(name, 5, spoil), steps=20).difference
    assert (difference.step, difference.field, difference.index[0]) == (5, name, 1)
    assert re.match(rf"step 5, {name}\[1.*\]: \S+ against \S+", str(difference))
    assert difference.a != difference.b


def test_a_negative_zero_is_a_difference():
    def negate(rewards):
        rewards[0, 0] = -0.0

    difference = replay_both(toy(), spoiled("rewards", 3, negate), steps=10).difference
    assert (difference.field, difference.a, difference.b) == ("rewards", "0.0", "-0.0")


def test_arrays_of_another_kind_differ():
    one, other = {"x": np.zeros(3, np.int32)}, {"x": np.zeros(3, np.int64)}
    assert str(first_of(4, one, other)) == "step 4, x[]: int32 [3] against int64 [3]"


def test_a_buffer_compared_with_itself_proves_nothing():
    batch = toy()
    with pytest.raises(SetupError, match="the same memory as observations"):
        replay_both(batch, batch, steps=5)


def test_what_a_side_shows_is_kept_before_the_other_one_moves():
    """B's step changes what A shows; only a snapshot taken at once sees that A was right before."""
    a, b = toy(), toy()
    real = b.step

    def step(actions):
        real(actions)
        a.rewards[:] = 9

    b.step = step
    assert replay_both(a, b, steps=5).difference is None


def test_different_agents_cannot_play_one_tape():
    with pytest.raises(InputError, match="3 agents against 4"):
        replay_both(toy(agents=3), toy(agents=4))


def test_a_slow_side_gets_the_least_steps():
    assert replay_both(toy(), toy(), steps=100, box_ns=0).steps == LEAST_STEPS
