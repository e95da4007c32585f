"""A trained run is a policy like any other: by its name, or by its checkpoint's path."""

import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import hotloop
from hotloop.cli.main import main
from hotloop.core.errors import InputError
from hotloop.core.target import Target
from hotloop.envs.subject import Proxy
from hotloop.lab.bench import bench
from hotloop.lab.measure.policy import acting, is_live, load, names_code, play_of
from hotloop.lab.measure.rounds import Rounds
from hotloop.lab.measure.target import check_player

SMALL = ["num_envs=4", "train.num_steps=8", "train.minibatch_size=32", "train.hidden=16", "train.timing=off"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which a run was trained."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        words = [*SMALL, "run=first", "total_timesteps=64", "tensorboard=false"]
        assert main(["train", "prospector/short", *words]) == 0
    return folder


@pytest.fixture(autouse=True)
def here(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trained)


def checkpoint() -> str:
    return str(next(Path("train_dir/first/checkpoints").glob("*.pt")))


def test_a_name_and_a_path_are_the_same_player() -> None:
    drawn = []
    for policy in ("run:first", checkpoint()):
        assert is_live(policy)
        batch = hotloop.make("prospector/short", num_envs=3)
        drawn.append(np.array(play_of(policy, batch).draw(5)))
    assert np.array_equal(*drawn)


def test_it_is_asked_of_a_batch_as_it_is_then_also_behind_others() -> None:
    batch = hotloop.make("prospector/short", num_envs=3)
    batch.reset()
    choose = load("run:first")
    direct = choose(batch).copy()
    assert np.array_equal(load("run:first")(Proxy(Proxy(batch))), direct)
    script = acting("run:first", batch)
    for _ in range(4):
        batch.step(next(script))
    assert batch.counters["env_steps"] == 12


def test_a_bench_plays_what_it_has_learnt() -> None:
    rounds = Rounds(count=6, iterations=8, warmup=4)
    record = bench(Target("prospector/short", {"num_envs": 4}), rounds, policy="run:first")
    assert record.method.policy == "run:first (replayed tape)"


@pytest.mark.parametrize(
    ("target", "policy", "told"),
    [
        ("grid/toy", "run:first", "was trained with world=prospector"),
        ("prospector/short", "run:frist", "unknown run 'frist': did you mean first"),
        ("prospector/short", "nowhere.pt", "there is no checkpoint nowhere.pt"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_measured(
    target: str, policy: str, told: str
) -> None:
    with pytest.raises(InputError, match=told):
        check_player(hotloop.make(target, num_envs=2), policy)


def test_somebody_elses_env_has_no_run_of_ours() -> None:
    from hotloop.envs.open import open_target

    with pytest.raises(InputError, match="is none"):
        check_player(open_target(Target("support.theirs:make")), "run:first")


def test_in_a_profile_its_own_time_is_a_row() -> None:
    record = hotloop.profile("prospector/short", num_envs=4, steps=80, policy="run:first")
    assert "wall/policy" in {phase.path for phase in record.phases}


def test_a_validation_is_played_by_it_in_the_place_of_the_worlds_players() -> None:
    assert main(["validate", "prospector/short", "200", "--policy", "run:first", "--output", "checked"]) == 0
    record = json.loads(next(Path("checked").glob("*.json")).read_text())
    assert record["method"]["policy"] == "random, run:first, adversarial"
    assert record["validation"]["mismatches"] == 0


def test_a_player_of_the_worlds_that_plays_live_has_its_own_row() -> None:
    record = hotloop.profile("prospector/short", num_envs=4, steps=80, policy="live:greedy")
    told = {phase.path: phase.share for phase in record.phases}
    assert 0 < told["wall/policy"] < 1
    assert record.method.policy == "live:greedy (live)"


def test_a_live_player_is_one_of_ours_and_has_to_be_known() -> None:
    with closing(hotloop.make("prospector/short", num_envs=2)) as batch:
        check_player(batch, "live:greedy")
        with pytest.raises(InputError, match="did you mean greedy"):
            check_player(batch, "live:greedyy")
    assert [names_code(each) for each in ("live:greedy", "run:mine", "mine.py:f", "random")] == [
        False,
        False,
        True,
        False,
    ]
