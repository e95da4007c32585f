import random

import numpy as np
import pytest

import hotloop
from hotloop.core.errors import InputError
from hotloop.core.target import Target
from hotloop.envs.open import open_target
from hotloop.lab.validate.equal import check_shown, hashed, random_states, row_hashes, shown


@pytest.mark.parametrize(
    ("generator", "draw"),
    [
        (np.random.default_rng(1), lambda each: each.random()),
        (np.random.RandomState(1), lambda each: each.rand()),
        (random.Random(1), lambda each: each.random()),
    ],
)
def test_one_draw_changes_the_hash_of_any_generator(generator, draw) -> None:
    before = hashed(generator)
    assert hashed(generator) == before
    draw(generator)
    assert hashed(generator) != before


def test_the_middle_of_a_long_state_counts() -> None:
    one, other = (np.random.RandomState(1) for _ in range(2))
    name, keys, *rest = other.get_state()
    keys = keys.copy()
    keys[300] ^= 1
    other.set_state((name, keys, *rest))
    assert hashed(one) != hashed(other)


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
