import pytest

from hotloop.core.errors import InputError
from hotloop.core.target import Target
from hotloop.lab.tune.combinations import is_same, read, sort, target_at


def test_names_of_other_trainers_are_understood() -> None:
    words = ["n_envs=4,8", "num_workers=1", "rollout_steps=8,16", "num_minibatches=2,4"]
    axes = read(Target.typed("grid/guard", words))
    assert axes.values == {
        "num_envs": ("4", "8"),
        "train.num_steps": ("8", "16"),
        "num_minibatches": ("2", "4"),
    }
    last = target_at(axes, axes.places[-1])
    agents = 8
    assert last.keys == {
        "threads": "1",
        "num_envs": "8",
        "train.num_steps": "16",
        "train.minibatch_size": str(8 * 16 * agents // 4),
    }
    places, skipped = sort(axes)
    assert (len(places), skipped) == (8, [])


def test_what_cannot_be_run_is_skipped_first_with_the_reason() -> None:
    words = ["num_envs=4", "train.num_steps=8", "train.minibatch_size=128,100"]
    axes = read(Target.typed("grid/guard", words))
    places, [skipped] = sort(axes)
    assert len(places) == 1
    assert skipped.at == {"train.minibatch_size": "100"}
    assert "100" in skipped.why


def test_where_nothing_can_be_run_it_is_refused_with_a_reason() -> None:
    words = ["num_envs=4", "train.num_steps=8", "train.minibatch_size=77,100"]
    axes = read(Target.typed("grid/guard", words))
    with pytest.raises(InputError, match=r"none of the 2 combinations can be run: .*77"):
        sort(axes)


def test_a_key_whose_one_value_has_commas_is_no_axis() -> None:
    axes = read(Target.typed("grid/guard", ["num_envs=4,8", "train.num_steps=8", "train.hidden=16,16"]))
    assert list(axes.values) == ["num_envs"]
    assert axes.target.keys["train.hidden"] == "16,16"


def test_a_winner_that_is_the_present_settings_in_other_words_is_not_compared_with_itself() -> None:
    present = Target.typed("farm/dev", ["num_envs=1", "perception=false"])
    assert is_same(present, present.with_keys({"index": "grid"}))
    assert not is_same(present, present.with_keys({"index": "brute"}))
    foreign = Target("my_env.py:make", {})
    assert not is_same(foreign, foreign.with_keys({"n": "10"}))


def test_one_key_under_two_names_is_refused() -> None:
    with pytest.raises(InputError, match="two names"):
        read(Target.typed("grid/guard", ["num_envs=4,8", "n_envs=2,4"]))
