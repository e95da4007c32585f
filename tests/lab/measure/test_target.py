import pytest

from hotloop.core.errors import InputError
from hotloop.core.target import Target
from hotloop.lab.measure.target import check, open_batch


def test_the_experiment_decides_about_the_instrument() -> None:
    assert open_batch(Target("grid/toy", {"num_envs": "2"}), profile=True).spec.settings.profile
    with pytest.raises(InputError, match="every probe off"):
        open_batch(Target("grid/toy", {"profile": "1"}), profile=True)


def test_every_target_is_checked_before_any_is_measured() -> None:
    toy = Target("grid/toy", {"num_envs": "2"})
    check([toy], "random")
    with pytest.raises(InputError, match="agnts"):
        check([toy, Target("grid/toy", {"agnts": "2"})], "random")
    with pytest.raises(
        InputError, match=r"unknown player 'techer': did you mean teacher\? grid/toy has random"
    ):
        check([toy], "techer")
