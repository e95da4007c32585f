import random
import re

import numpy as np
import pytest
from support.replays import replay_both

import hotloop
from hotloop.core.errors import InputError
from hotloop.core.settings import Target
from hotloop.envs.batch import Batch
from hotloop.envs.open import open_target
from hotloop.lab.validate.equal import (
    EXACT,
    Offers,
    check_shown,
    closeness_of,
    first_of,
    hash_generator,
    random_states,
    row_hashes,
    shown,
)

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
    with pytest.raises(InputError, match="the same memory as observations"):
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


def test_a_slow_side_gets_the_steps_that_fit_and_one_at_least():
    assert replay_both(toy(), toy(), steps=100, box_ns=0).steps == 1


@pytest.mark.parametrize(
    ("generator", "draw"),
    [
        (np.random.default_rng(1), lambda each: each.random()),
        (np.random.RandomState(1), lambda each: each.rand()),
        (random.Random(1), lambda each: each.random()),
    ],
)
def test_one_draw_changes_the_hash_of_any_generator(generator, draw) -> None:
    before = hash_generator(generator)
    assert hash_generator(generator) == before
    draw(generator)
    assert hash_generator(generator) != before


def test_the_middle_of_a_long_state_counts() -> None:
    one, other = (np.random.RandomState(1) for _ in range(2))
    name, keys, *rest = other.get_state()
    keys = keys.copy()
    keys[300] ^= 1
    other.set_state((name, keys, *rest))
    assert hash_generator(one) != hash_generator(other)


def test_the_random_numbers_of_every_env_are_shown() -> None:
    single, pair = (
        open_target(Target("gym:CartPole-v1", {})),
        open_target(Target("gym:CartPole-v1", {"num_envs": 2})),
    )
    for subject, envs in ((single, 1), (pair, 2)):
        subject.reset()
        states = random_states(subject)["random.np_random"]
        assert states.shape == (envs,)
        assert len(set(states.tolist())) == envs


def test_flags_come_before_what_follows_from_them() -> None:
    batch = hotloop.make("grid/toy", num_envs=1)
    batch.reset()
    assert list(shown(batch))[:4] == ["terminals", "truncations", "rewards", "observations"]


def test_a_hash_an_env_is_of_all_its_rows() -> None:
    moment = {"a": np.arange(6).reshape(3, 2), "b": np.zeros(3)}
    before = row_hashes(moment)
    moment["b"][1] = -0.0
    changed = before != row_hashes(moment)
    assert changed.tolist() == [False, True, False]


def test_a_field_of_only_one_side_is_named() -> None:
    one = {name: np.zeros(2) for name in ("observations", "rewards", "terminals", "truncations")}
    other = {name: rows.copy() for name, rows in one.items()} | {"infos.more": np.zeros(2)}
    assert check_shown(one, other) == ("infos.more",)
    del other["rewards"]
    with pytest.raises(InputError, match="do not both answer with rewards"):
        check_shown(one, other)


def moments(*names: str) -> dict[str, np.ndarray]:
    return {name: np.zeros(1) for name in names}


def test_a_field_that_only_one_side_ever_shows_does_not_decide() -> None:
    offers = Offers()
    assert offers.compare(0, moments("rewards"), moments("rewards")) is None
    assert offers.compare(1, moments("rewards"), moments("rewards", "infos.episode")) is None
    assert offers.one_sided == {"infos.episode"}


@pytest.mark.parametrize("late", [2, 3])
def test_a_field_that_both_sides_have_and_not_at_the_same_moments_is_a_difference(late: int) -> None:
    offers, found = Offers(), None
    for step in range(4):
        ours = moments("rewards", *(["infos.rare"] if step == 1 else []))
        theirs = moments("rewards", *(["infos.rare"] if step == late else []))
        found = found or offers.compare(step, ours, theirs)
    assert found is not None
    assert (found.field, found.step) == ("infos.rare", 1)
