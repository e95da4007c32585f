from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

from hotloop.core.errors import InputError
from hotloop.envs.adapters import register_envs
from hotloop.envs.batch import OrderError

register_envs()
NAME = "hotloop/grid-toy-v0"
SHORT: dict[str, Any] = {"agents": 1, "max_steps": 9, "map_size": "12x12"}
ENVS = 5


def make_vec(**given: Any) -> Any:
    return gymnasium.make_vec(NAME, num_envs=ENVS, **SHORT, **given)


def same(a: Any, b: Any) -> bool:
    """Whether two trees of dicts and arrays are equal, object arrays element by element."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple) or (isinstance(a, np.ndarray) and a.dtype == object):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return np.array_equal(a, b)


def test_make_vec_gives_our_batch_with_its_autoreset_mode_declared() -> None:
    envs = make_vec()
    assert type(envs.unwrapped).__name__ == "HotloopVectorEnv"
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert envs.single_observation_space.shape == (200, 3)
    assert envs.observation_space.shape == (ENVS, 200, 3)
    assert envs.action_space.shape == (ENVS,)


@pytest.mark.parametrize("given", [{"agents": 1, "max_steps": 9}, {"agents": 3, "max_steps": 7}])
def test_it_answers_as_gymnasiums_own_vector_env_over_our_single_envs(given: dict[str, int]) -> None:
    """Observations, rewards, flags, infos and final infos, over several episodes of the same seeds."""
    ours = gymnasium.make_vec(NAME, num_envs=ENVS, map_size="12x12", **given)
    theirs = SyncVectorEnv(
        [lambda: gymnasium.make(NAME, map_size="12x12", **given)] * ENVS,
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    assert ours.action_space == theirs.action_space
    assert ours.observation_space == theirs.observation_space
    assert same(ours.reset(seed=11), theirs.reset(seed=11))
    ours.action_space.seed(1)
    for step in range(30):
        actions = ours.action_space.sample()
        assert same(ours.step(actions), theirs.step(actions)), step
    ours.close()
    theirs.close()


def test_a_seed_decides_all_that_follows_whatever_came_before() -> None:
    envs = make_vec()

    def play() -> list[Any]:
        envs.reset(seed=3)
        return [envs.step(np.full(ENVS, 1 + step % 8)) for step in range(25)]

    first, second = play(), play()
    assert all(map(same, first, second))


def test_some_envs_are_reset_and_the_others_stay_as_they_are() -> None:
    envs = make_vec(autoreset_mode="Disabled")
    before, _ = envs.reset(seed=0)
    for _ in range(3):
        before = envs.step(np.full(ENVS, 5))[0]
    mask = np.array([True, False, False, True, False])
    after, infos = envs.reset(seed=[77] * ENVS, options={"reset_mask": mask})
    assert np.array_equal(after[~mask], before[~mask])
    assert np.array_equal(after[0], after[3])
    assert infos["episode_length"].tolist() == [0, 3, 3, 0, 3]


def test_without_autoreset_a_finished_env_waits_for_its_reset() -> None:
    envs = make_vec(autoreset_mode=AutoresetMode.DISABLED)
    envs.reset(seed=0)
    for _ in range(9):
        *_, cut, infos = envs.step(np.zeros(ENVS, np.int64))
    assert cut.all()
    assert "final_obs" not in infos
    with pytest.raises(OrderError):
        envs.step(np.zeros(ENVS, np.int64))
    envs.reset(options={"reset_mask": cut})
    assert not envs.step(np.zeros(ENVS, np.int64))[3].any()


def test_copies_are_the_callers_and_views_are_not() -> None:
    for copy in (True, False):
        envs = make_vec(copy=copy)
        first, _ = envs.reset(seed=0)
        kept = first.copy()
        envs.step(np.full(ENVS, 4))
        assert np.array_equal(first, kept) is copy


def test_wrappers_of_gymnasium_work_on_it() -> None:
    envs = DictInfoToList(RecordEpisodeStatistics(make_vec()))
    envs.reset(seed=0)
    for _ in range(9):
        *_, infos = envs.step(np.zeros(ENVS, np.int64))
    assert [info["episode"]["l"] for info in infos] == [9] * ENVS
    assert all(info["final_obs"].shape == (200, 3) for info in infos)


def test_no_mode_is_accepted_that_would_have_an_env_sit_out_a_step() -> None:
    with pytest.raises(InputError, match="'NextStep': expected SameStep or Disabled"):
        make_vec(autoreset_mode=AutoresetMode.NEXT_STEP)


@pytest.mark.parametrize(
    "actions",
    [np.zeros(ENVS + 1, np.int64), np.zeros(ENVS), np.full(ENVS, 2**32), [0] * ENVS],
    ids=["shape", "float", "large", "list"],
)
def test_actions_that_do_not_fit_are_refused(actions: Any) -> None:
    envs = make_vec()
    envs.reset(seed=0)
    with pytest.raises(InputError, match="fit"):
        envs.step(actions)


@pytest.mark.parametrize("mask", [np.zeros(ENVS, np.bool_), np.ones(3, np.bool_), [True] * ENVS])
def test_a_mask_that_does_not_fit_is_refused(mask: Any) -> None:
    envs = make_vec()
    envs.reset(seed=0)
    with pytest.raises(InputError, match="reset_mask"):
        envs.reset(options={"reset_mask": mask})
