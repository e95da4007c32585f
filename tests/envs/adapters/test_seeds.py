import numpy as np
import pytest

from hotloop.core.errors import InputError
from hotloop.core.exact_math import mix
from hotloop.envs.adapters.views import EpisodeSeeds, mix_rows, one_each

EVERY = np.arange(3)


def test_rows_are_mixed_as_single_words_are() -> None:
    words = np.array([0, 1, 42, 2**63, 2**64 - 1], np.uint64)
    more = np.array([7, 0, 2**64 - 1, 3, 5], np.uint64)
    expected = [mix(int(a), int(b)) for a, b in zip(words, more, strict=True)]
    assert mix_rows(words, more).tolist() == expected


def test_the_first_episode_has_the_seed_itself_and_the_next_ones_follow_from_it() -> None:
    seeds = EpisodeSeeds(3)
    assert seeds.begin(EVERY, [7, 8, 9], np.random.default_rng(0)).tolist() == [7, 8, 9]
    assert seeds.follow(np.array([1])).tolist() == [mix(8, 1)]
    assert seeds.follow(np.array([0, 1])).tolist() == [mix(7, 1), mix(8, 2)]


def test_an_env_without_a_seed_goes_on_and_one_that_never_had_any_gets_a_random_one() -> None:
    seeds, random = EpisodeSeeds(3), np.random.default_rng(0)
    first = seeds.begin(EVERY, [5, None, None], random).tolist()
    assert first[0] == 5
    assert len(set(first)) == 3
    assert seeds.begin(EVERY, [None, 6, None], random).tolist() == [mix(5, 1), 6, mix(first[2], 1)]


def test_one_number_seeds_envs_with_itself_and_its_successors() -> None:
    assert one_each(5, 3) == [5, 6, 7]
    assert one_each(None, 2) == [None, None]
    assert one_each([4, None], 2) == [4, None]


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    with pytest.raises(InputError, match=f"seed {seed} is out of range"):
        EpisodeSeeds(1).begin(np.zeros(1, np.int64), [seed], np.random.default_rng(0))


def test_a_list_of_another_length_is_refused() -> None:
    with pytest.raises(InputError, match="2 seeds for 3 envs"):
        one_each([1, 2], 3)
