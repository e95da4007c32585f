import pytest
from support.trainings import SMALL, small

from hotloop.core.errors import InputError
from hotloop.core.settings import Target
from hotloop.lab.training.settings import NUM_ENVS, per_update, read, updates_of, with_full_names


def test_keys_go_to_who_reads_them() -> None:
    made = read(
        Target(
            "prospector",
            {
                "time_max": "99",
                "num_envs": "64",
                "train.gamma": "0.9",
                "train.eval.every": "3",
                "timing": "off",
            },
        ),
    )
    assert (made.target.keys["time_max"], made.target.keys["num_envs"]) == ("99", "64")
    assert (made.train.gamma, made.eval.every, made.around.timing) == (0.9, 3, "off")


def test_a_bare_key_that_fits_only_the_training_is_accepted() -> None:
    made = read(
        Target("prospector", {"update_epochs": "2", "eval.episodes": "5", "profiler.enabled": "true"})
    )
    assert (made.train.update_epochs, made.eval.episodes, made.profiler.enabled) == (2, 5, True)


def test_a_bare_key_that_the_batch_has_too_is_the_batchs() -> None:
    made = read(Target("prospector", {"seed": "7", "train.seed": "9"}))
    assert (made.target.keys["seed"], made.train.seed) == ("7", 9)


@pytest.mark.parametrize(
    ("words", "envs"),
    [
        ({}, 16),
        ({"train.algorithm": "ppo"}, NUM_ENVS),
        ({"agents": "50"}, NUM_ENVS),
        ({"train.buffer_size": "800000"}, NUM_ENVS),
    ],
)
def test_dqn_has_as_many_of_the_usual_envs_as_its_replay_has_room_for(
    words: dict[str, str], envs: int
) -> None:
    """farm/decision has 1,000 agents, and a replay holds three steps of all of them beside a minibatch."""
    made = read(Target("farm/decision", {"train.algorithm": "dqn", **words}))
    assert made.target.keys["num_envs"] == envs


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"train.gama": "1"}, "did you mean train.gamma?"),
        ({"eval.evry": "1"}, "unknown key 'eval.evry'"),
        ({"gamma": "1", "train.gamma": "1"}, "given twice"),
        ({"train.clip_coef": "3"}, "clip_coef=3 does not fit"),
        ({"autoreset": "false"}, "leave out autoreset="),
        ({"minibatch_size": "1000"}, "use 512 or 1024"),
        ({"num_envs": "0"}, "num_envs=0 does not fit"),
        ({"train.timing": "sometimes"}, "timing=sometimes does not fit"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_made(words: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=None) as caught:
        read(Target("prospector", words))
    assert told in str(caught.value)


def test_keys_of_somebody_elses_environment_that_are_not_the_trainers_are_its_own() -> None:
    made = read(
        Target("gym:CartPole-v1", {"sutton_barto_reward": "true", "num_steps": 16, "train.gamma": 0.9})
    )
    assert made.target.keys == {"num_envs": 8, "sutton_barto_reward": "true"}
    assert (made.train.num_steps, made.train.gamma, made.train.minibatch_size) == (16, 0.9, 32)
    with pytest.raises(InputError, match=r"did you mean train\.gamma"):
        read(Target("gym:CartPole-v1", {"train.gama": 1}))


def test_nobody_says_how_many_envs() -> None:
    assert read(Target("prospector", {})).target.keys["num_envs"] == NUM_ENVS


def test_words_get_their_full_names() -> None:
    words = {"num_envs": "4", "gamma": "0.5", "train.eval.every": "2", "tensorboard": "false"}
    assert with_full_names(Target("prospector", words)).keys == {
        "num_envs": "4",
        "train.gamma": "0.5",
        "train.eval.every": "2",
        "train.tensorboard": "false",
    }


@pytest.mark.parametrize(
    ("total", "envs", "steps"),
    [(16_383, 256, 63), (256, 256, 1), (100, 100, 1), (1, 1, 1), (16_384, 256, 64)],
)
def test_fewer_steps_than_a_rollout_shrink_it_and_say_so(total: int, envs: int, steps: int) -> None:
    made = read(Target("prospector", {"total_timesteps": str(total)}))
    assert (int(str(made.target.keys["num_envs"])), made.train.num_steps) == (envs, steps)
    assert (envs * steps) % made.train.minibatch_size == 0
    assert per_update(made) <= total
    assert [notice.code for notice in made.notices] == ([] if total == 16_384 else ["shrunk"])


def test_a_shrunk_rollout_of_many_agents_still_divides() -> None:
    made = read(Target("grid/guard", {"total_timesteps": "30", "num_envs": "7", "train.lstm": "8"}))
    rows = 7 * 8
    assert made.train.num_steps == 4
    assert (rows * 4) % made.train.minibatch_size == 0
    assert made.train.minibatch_size % 4 == 0


def test_updates_are_counted_up() -> None:
    assert updates_of(small(updates=6)) == 6
    assert updates_of(read(Target("prospector/short", {**SMALL, "total_timesteps": "65"}))) == 2


def test_what_is_timed_times_the_worlds_phases_unless_somebody_says_not() -> None:
    assert small().open().spec.settings.profile
    assert not small(train__timing="off").open().spec.settings.profile
    assert not small(profile="false").open().spec.settings.profile


def test_a_record_tells_trainings_apart_by_what_changes_results() -> None:
    first, same, other = small(), small(train__log_every=5), small(train__gamma=0.5)
    hashes = [made.described(made.open()).workload_hash for made in (first, same, other)]
    assert hashes[0] == hashes[1] != hashes[2]
    described = first.described(first.open())
    assert described.params["train.hidden"] == [16]
    assert described.variant["train.log_every"] == 2


def test_a_number_of_minibatches_is_a_size_of_them() -> None:
    keys = {"num_envs": "4", "num_steps": "8"}
    made = read(Target("grid/guard", {**keys, "num_minibatches": "2"}))
    size = made.train.minibatch_size
    assert size == per_update(made) * 8 // 2  # of its 8 agents
    assert made.train == read(Target("grid/guard", {**keys, "minibatch_size": str(size)})).train
    with pytest.raises(InputError, match="num_minibatches=many does not fit"):
        read(Target("grid/guard", {**keys, "num_minibatches": "many"}))
