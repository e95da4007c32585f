import pytest

from hotloop.core.errors import InputError
from hotloop.core.settings import apply, describe
from hotloop.train.settings import TrainSettings, check_sizes


def test_every_setting_has_a_help_that_is_a_sentence() -> None:
    for info in describe(TrainSettings):
        assert info.help[0].isupper(), info.name
        assert info.help.endswith("."), info.name


def test_minibatches_that_divide_a_rollout_are_accepted() -> None:
    check_sizes(TrainSettings(num_steps=64, minibatch_size=4096), 1024)


def test_a_rollout_that_cannot_be_divided_names_the_nearest_sizes_that_can() -> None:
    with pytest.raises(
        InputError, match=r"minibatch_size=100 does not divide .* 768 samples .*use 96 or 128"
    ):
        check_sizes(TrainSettings(num_steps=64, minibatch_size=100), 12)


def test_a_minibatch_larger_than_the_rollout_is_told_the_rollout() -> None:
    with pytest.raises(InputError, match=r"use 64$"):
        check_sizes(TrainSettings(num_steps=64, minibatch_size=4096), 1)


def test_with_a_memory_whole_sequences_are_asked_for() -> None:
    with pytest.raises(InputError, match="multiple of num_steps=64"):
        check_sizes(TrainSettings(num_steps=64, minibatch_size=96, lstm=8), 12)


def test_nearest_sizes_are_multiples_of_a_sequence() -> None:
    with pytest.raises(InputError, match="256 or 384"):
        check_sizes(TrainSettings(num_steps=64, minibatch_size=64 * 5, lstm=8), 12)
    with pytest.raises(InputError, match="4 or 6"):
        check_sizes(TrainSettings(num_steps=1, minibatch_size=5), 12)


def test_an_unknown_setting_is_told_the_nearest_known() -> None:
    with pytest.raises(InputError, match="did you mean learning_rate"):
        apply(TrainSettings, {"learning_rat": "1"})
