import pytest

from hotloop.core.errors import InputError
from hotloop.core.settings import Target
from hotloop.lab.sweep.combinations import is_same, read, sort, target_at


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


class Made:
    """An env's maker that has a parameter of its own under another trainer's name."""

    num_actions = 2

    def __init__(self, num_workers: int = 1, threads: int = 1) -> None:
        self.num_workers = num_workers

    def reset(self, seed: int | None = None) -> float:
        return 0.0

    def step(self, action: int) -> tuple[float, float, bool, dict[str, object]]:
        return 0.0, 0.0, False, {}


class Threaded(Made):
    def __init__(self, threads: int = 1) -> None:
        super().__init__(threads=threads)


class Bare(Made):
    def __init__(self, size: int = 1) -> None:
        super().__init__()


def test_a_parameter_of_a_foreign_env_keeps_its_name() -> None:
    axes = read(Target.typed(f"{__name__}:Made", ["num_workers=1,2"]))
    assert axes.values == {"num_workers": ("1", "2")}
    axes = read(Target.typed(f"{__name__}:Threaded", ["num_workers=1,2", "n_envs=2"]))
    assert axes.values == {"threads": ("1", "2")}
    assert target_at(axes, axes.places[-1]).keys == {"threads": "2", "num_envs": "2"}


@pytest.mark.parametrize("name", [f"{__name__}:Bare", "gym:CartPole-v1"])
def test_workers_that_a_foreign_env_does_not_have_are_refused_with_what_it_has(name: str) -> None:
    with pytest.raises(InputError, match=r"num_workers= does not fit .* vector=sync,async"):
        read(Target.typed(name, ["num_envs=2,4", "num_workers=1,2"]))


def test_workers_of_a_foreign_training_are_those_of_its_crew() -> None:
    words = ["vector=async", "num_envs=4", "num_workers=1,2", "train.num_steps=8"]
    axes = read(Target.typed("gym:CartPole-v1", words))
    assert axes.values == {"workers": ("1", "2")}


@pytest.mark.parametrize("count", ["two", "-1", "1.5"])
def test_a_number_of_minibatches_that_is_none_is_refused(count: str) -> None:
    with pytest.raises(InputError, match=r"num_minibatches=.* does not fit: expected int of at least 1"):
        read(Target.typed("grid/guard", ["num_envs=4", "train.num_steps=8,16", f"num_minibatches={count}"]))
