"""A trained run is a policy like any other: by its name, or by its checkpoint's path."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import hotloop
from hotloop.cli.main import main
from hotloop.core.errors import InputError
from hotloop.core.settings import Target
from hotloop.envs.foreign.training import open_trainable
from hotloop.envs.open import open_target
from hotloop.envs.subject import Proxy
from hotloop.lab.bench import bench
from hotloop.lab.measure.loop import Rounds
from hotloop.lab.measure.policy import acting, is_live, load, names_code, play_of
from hotloop.lab.measure.target import check_player
from hotloop.lab.training.settings import read
from hotloop.train.trainer import Trainer

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"

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


def test_somebody_elses_env_is_not_played_by_a_run_of_our_worlds() -> None:
    with pytest.raises(InputError, match="was trained with world=prospector"):
        check_player(open_target(Target("support.theirs:make")), "run:first")


THEIRS = {
    "pole": ("gym:CartPole-v1", ["train.minibatch_size=32", "train.lstm=4"]),
    "arm": (f"{EXAMPLES}/my_arm.py:make", ["train.minibatch_size=32"]),
    "team": (f"{EXAMPLES}/my_team.py:make", ["train.minibatch_size=96"]),
}


@pytest.fixture(scope="module")
def theirs(trained: Path) -> None:
    """Runs on envs of others: numbered actions and a memory, real numbers, a team."""
    pytest.importorskip("gymnasium")
    pytest.importorskip("pettingzoo")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(trained)
        for name, (target, words) in THEIRS.items():
            told = ["num_envs=4", "train.num_steps=8", "train.hidden=16", "train.timing=off", *words]
            settings = read(Target(target, dict(each.split("=") for each in [*told, "total_timesteps=32"])))
            with closing(settings.open()) as batch:
                Trainer(batch, settings.train).save(Path("train_dir") / name / "checkpoints")


@pytest.mark.usefixtures("theirs")
@pytest.mark.parametrize("name", THEIRS)
@pytest.mark.parametrize("envs", [1, 3])
def test_a_run_on_their_env_chooses_when_it_is_measured_what_it_chooses_in_training(
    name: str, envs: int
) -> None:
    target, checkpoint = THEIRS[name][0], str(next(Path(f"train_dir/{name}/checkpoints").glob("*.pt")))
    keys = {"num_envs": envs} if envs > 1 else {}
    with (
        closing(open_target(Target(target, keys))) as subject,
        closing(open_trainable(Target(target, {"num_envs": envs}))) as batch,
    ):
        subject.reset()
        batch.reset(list(range(subject.spec.seed, subject.spec.seed + envs)))
        measured, training = load(checkpoint), load(checkpoint)
        for _ in range(3):
            one, other = measured(subject), training(batch)
            own = own_of(batch, other) if envs > 1 else own_of(batch, other)[0]
            assert str(plain(one)) == str(plain(own))
            subject.step(one)
            batch.step(other)


def own_of(batch: Any, actions: Any) -> list[Any]:
    """What the envs of a training do by some actions, as a step of each would take it."""
    form = batch.crew.members[0]._form
    if not form.agents:
        return [form.doing.own(row[0]) for row in actions]
    return [{agent: form.doing.own(row[k]) for k, agent in enumerate(form.agents)} for row in actions]


def plain(own: Any) -> Any:
    if isinstance(own, dict):
        return {key: plain(value) for key, value in own.items()}
    if isinstance(own, (list, tuple)):
        return [plain(each) for each in own]
    return np.asarray(own).tolist()


@pytest.mark.usefixtures("theirs")
def test_what_no_run_can_play_is_refused() -> None:
    with pytest.raises(InputError, match="runs play envs of Gymnasium"):
        load(str(next(Path("train_dir/pole/checkpoints").glob("*.pt"))))(
            open_target(Target("support.theirs:plain"))
        )


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
